//! Reading over HTTP, with limits in time and size. Messages never show credentials.

use std::fs;
use std::io::Read;
use std::time::Duration;

use ureq::ResponseExt;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use super::Progress;
use super::variables::Variables;

/// How long connecting may take.
pub const CONNECT: Duration = Duration::from_secs(5);

/// Why nothing was read.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The server was not reached, or the connection broke.
    #[error("{url} was not reached: {cause}")]
    Unreached {
        /// The address, without credentials.
        url: String,
        /// What the client said.
        cause: String,
    },
    /// The server answered with an error.
    #[error("{url} answers {status}")]
    Status {
        /// The address, without credentials.
        url: String,
        /// The status code.
        status: u16,
    },
    /// The answer is longer than allowed.
    #[error("{url} answers with more than {limit} bytes")]
    TooLarge {
        /// The address, without credentials.
        url: String,
        /// The limit.
        limit: u64,
    },
    /// The file of certificates that a variable names cannot be used.
    #[error("{variable} names {path}, which holds no certificates: {cause}")]
    Certificates {
        /// The variable.
        variable: &'static str,
        /// The file.
        path: String,
        /// What is wrong.
        cause: String,
    },
}

impl HttpError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unreached { .. } => Some("name another index with --index URL, or use --offline".into()),
            Self::Status { status: 401 | 403, .. } => {
                Some("put the credentials into the index URL of pip's configuration".into())
            }
            Self::Status { .. } | Self::TooLarge { .. } => Some("name another index with --index URL".into()),
            Self::Certificates { variable, .. } => Some(format!("unset {variable}")),
        }
    }
}

/// What to read.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The address; may hold credentials.
    pub url: &'a str,
    /// The media types that are understood.
    pub accept: &'a str,
    /// The longest answer.
    pub limit: u64,
    /// How long all of it may take.
    pub patience: Duration,
}

/// What was read.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The body.
    pub bytes: Vec<u8>,
    /// The media type, lower case.
    pub media_type: String,
    /// The address after redirects, without credentials.
    pub url: String,
}

/// An HTTP client with the user's proxies and certificates.
#[derive(Debug)]
pub struct Http {
    agent: ureq::Agent,
}

impl Http {
    /// A client; certificates from `PIP_CERT`, `REQUESTS_CA_BUNDLE` or `SSL_CERT_FILE`, else the system's.
    pub fn new(variables: &Variables) -> Result<Self, HttpError> {
        let roots = certificates(variables)?.unwrap_or(RootCerts::PlatformVerifier);
        let config = ureq::Agent::config_builder()
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(Duration::from_secs(30)))
            .user_agent(concat!("mambapatch/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self { agent: config.new_agent() })
    }

    /// Reads one address whole.
    pub fn get(&self, request: Request<'_>, progress: &mut dyn FnMut(Progress)) -> Result<Answer, HttpError> {
        let shown = without_credentials(request.url);
        let failed = |error: ureq::Error| match error {
            ureq::Error::StatusCode(status) => HttpError::Status { url: shown.clone(), status },
            other => {
                HttpError::Unreached { url: shown.clone(), cause: without_credentials(&other.to_string()) }
            }
        };
        // An archive that a server takes for a compressed tar would come unpacked, and its hash would be wrong.
        let call = self.agent.get(request.url).header("Accept", request.accept);
        let call = call.header("Accept-Encoding", "identity");
        let mut response =
            call.config().timeout_global(Some(request.patience)).build().call().map_err(failed)?;
        let header = response.headers().get("content-type").and_then(|value| value.to_str().ok());
        let media_type = header.unwrap_or_default().split(';').next().unwrap_or_default();
        let media_type = media_type.trim().to_ascii_lowercase();
        let url = without_credentials(&response.get_uri().to_string());
        let total = response.body().content_length();
        let mut reader = response.body_mut().as_reader();
        let bytes = read_body(&mut reader, Body { what: &shown, total, limit: request.limit }, progress)?;
        Ok(Answer { bytes, media_type, url })
    }
}

/// What is known of an answer before it is read.
struct Body<'a> {
    what: &'a str,
    total: Option<u64>,
    limit: u64,
}

fn read_body(
    reader: &mut dyn Read,
    body: Body<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<u8>, HttpError> {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let count = reader.read(&mut piece).map_err(|error| HttpError::Unreached {
            url: body.what.into(),
            cause: without_credentials(&error.to_string()),
        })?;
        if count == 0 {
            return Ok(bytes);
        }
        bytes.extend_from_slice(&piece[..count]);
        let done = bytes.len() as u64;
        if done > body.limit {
            return Err(HttpError::TooLarge { url: body.what.into(), limit: body.limit });
        }
        progress(Progress::Bytes { what: body.what.into(), done, total: body.total });
    }
}

fn certificates(variables: &Variables) -> Result<Option<RootCerts>, HttpError> {
    let named = ["PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"]
        .into_iter()
        .find_map(|variable| Some((variable, variables.get(variable)?)));
    let Some((variable, path)) = named else { return Ok(None) };
    let failed = |cause: String| HttpError::Certificates { variable, path: path.into(), cause };
    let pem = fs::read(path).map_err(|error| failed(error.to_string()))?;
    let certificates: Vec<Certificate<'static>> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(failed("no certificate in it".into()));
    }
    Ok(Some(RootCerts::new_with_certs(&certificates)))
}

/// The path of an address, decoded no further: without server, query and fragment.
pub fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['?', '#']).next().unwrap_or(rest)
}

/// A text with every `user:password@` of an address taken out.
pub fn without_credentials(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        let end = after.find(['/', '?', '#', ' ', '\'', '"', '`']).unwrap_or(after.len());
        rest = match after[..end].rfind('@') {
            Some(at) => &after[at + 1..],
            None => after,
        };
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_taken_out() {
        assert_eq!(without_credentials("see https://me:pw@host.test/x y"), "see https://host.test/x y");
        assert_eq!(without_credentials("ssh://git@host.test/a@b"), "ssh://host.test/a@b");
        assert_eq!(without_credentials("a@b and http://c.test"), "a@b and http://c.test");
    }
}
