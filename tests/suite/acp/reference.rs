//! Tests of the reference page: the code and the page name the same things.
