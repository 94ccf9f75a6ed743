//! HTTP/1.1, one request per connection.

use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

const HEAD_BYTES: u64 = 1 << 20;
const BODY_BYTES: u64 = 64 << 20;

pub(super) struct HttpRequest {
    /// The method and the target.
    pub(super) line: String,
    pub(super) body: Vec<u8>,
}

impl HttpRequest {
    /// Error: the system's, or `InvalidData` for a request that is not HTTP or is too large.
    pub(super) fn read(mut stream: &TcpStream) -> io::Result<HttpRequest> {
        let mut source = BufReader::new(stream);
        let first = line(&mut source)?;
        let mut words = first.split(' ');
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let (mut length, mut chunked) = (0, false);
        loop {
            let header = line(&mut source)?.to_ascii_lowercase();
            match header.split_once(':').map(|(name, value)| (name, value.trim())) {
                None => break,
                Some(("content-length", value)) => length = value.parse().map_err(|_| io::ErrorKind::InvalidData)?,
                Some(("transfer-encoding", "chunked")) => chunked = true,
                Some(("expect", "100-continue")) => stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?,
                Some(_) => {}
            }
        }
        let body = if chunked { chunks(&mut source)? } else { bytes(&mut source, length)? };
        Ok(HttpRequest { line: format!("{method} {target}"), body })
    }
}

fn line(source: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    source.take(HEAD_BYTES).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

fn bytes(source: &mut impl BufRead, length: u64) -> io::Result<Vec<u8>> {
    if length > BODY_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = Vec::new();
    source.take(length).read_to_end(&mut body)?;
    Ok(body)
}

fn chunks(source: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let head = line(source)?;
        let size = u64::from_str_radix(head.split(';').next().unwrap_or_default(), 16);
        let chunk = bytes(source, size.map_err(|_| io::ErrorKind::InvalidData)?)?;
        if chunk.is_empty() || (body.len() + chunk.len()) as u64 > BODY_BYTES {
            return Ok(body);
        }
        body.extend(chunk);
        line(source)?;
    }
}

/// Sends a response in one piece. `headers`: further ones, each with its line end.
pub(super) fn whole(out: &mut impl Write, status: u16, headers: &str, body: &Value) -> io::Result<()> {
    let body = body.to_string();
    let length = body.len();
    write!(
        out,
        "HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
    )?;
    out.flush()
}

/// `cut`: without the header by which some clients take a cut response for a whole one.
pub(super) fn begin(out: &mut impl Write, cut: bool) -> io::Result<()> {
    let close = if cut { "" } else { "connection: close\r\n" };
    write!(out, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n{close}\r\n")?;
    out.flush()
}

/// The empty one ends the response.
pub(super) fn event(out: &mut impl Write, text: &str) -> io::Result<()> {
    write!(out, "{:x}\r\n{text}\r\n", text.len())?;
    out.flush()
}
