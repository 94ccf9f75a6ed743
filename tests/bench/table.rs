//! Prints results as a table for people, or as JSON Lines.

use serde_json::{Map, Value};
use std::cell::RefCell;

/// A printer of results.
pub(crate) struct Table {
    pub(crate) json: bool,
}

thread_local! {
    /// The current part of the table, and its columns.
    static PART: RefCell<(String, Vec<String>)> = RefCell::default();
}

impl Table {
    /// Begins a part of the table.
    pub(crate) fn heading(&self, part: &str, columns: &[&str]) {
        PART.set((part.to_owned(), columns.iter().map(|&column| column.to_owned()).collect()));
        if !self.json {
            let columns: String = columns.iter().map(|column| format!(" {column:>12}")).collect();
            println!("\n{part:<40}{columns}");
        }
    }

    /// Prints a row with one number per column. NaN: the column does not apply.
    pub(crate) fn row(&self, name: &str, numbers: &[f64]) {
        if !self.json {
            let text = |number: &f64| match number {
                number if number.is_nan() => "-".to_owned(),
                number if number.abs() >= 1000.0 => format!("{number:.0}"),
                number => format!("{number:.2}"),
            };
            let numbers: String = numbers.iter().map(|number| format!(" {:>12}", text(number))).collect();
            return println!("{name:<40}{numbers}");
        }
        let mut row = Map::new();
        PART.with_borrow(|(part, columns)| {
            row.insert("part".into(), part.as_str().into());
            row.insert("name".into(), name.into());
            row.extend(columns.iter().zip(numbers).map(|(column, number)| (column.clone(), Value::from(*number))));
        });
        println!("{}", Value::Object(row));
    }
}
