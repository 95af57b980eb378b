//! Plain HTTP to an API server: what our client does is looked at by other means.

use std::fmt;

use http::Method;
use serde_json::{Value, json};

/// How long a change may take that controllers make, in seconds: they take one or two, on a busy machine
/// some tens.
const SOON: u32 = 90;

/// A user's way to an API server. Answers that are not asked for are failures of the test.
#[derive(Clone)]
pub struct Api {
    client: reqwest::Client,
    server: String,
    token: String,
}

impl Api {
    pub fn new(address: &str, authority: &str, token: &str) -> Self {
        let authority = reqwest::Certificate::from_pem(authority.as_bytes()).unwrap();
        let client = reqwest::Client::builder().tls_certs_only([authority]).no_proxy().build().unwrap();
        Self { client, server: format!("https://{address}"), token: token.to_owned() }
    }

    /// What comes of a request.
    pub async fn ask(&self, method: Method, path: &str, media: &str, body: Option<&Value>) -> reqwest::Result<Answer> {
        let mut request = self.client.request(method.clone(), format!("{}{path}", self.server));
        request = request.bearer_auth(&self.token).header("Content-Type", media);
        if let Some(body) = body {
            request = request.body(body.to_string());
        }
        let response = request.send().await?;
        let status = response.status().as_u16();
        let text = response.text().await?;
        Ok(Answer { asked: format!("{method} {path}"), status, text })
    }

    async fn must(&self, method: Method, path: &str, media: &str, body: Option<&Value>) -> Value {
        let answer = self.ask(method, path, media, body).await.unwrap();
        assert!((200..300).contains(&answer.status), "{answer}");
        answer.value()
    }

    pub async fn is_ready(&self) -> bool {
        let answer = self.ask(Method::GET, "/readyz", "application/json", None).await;
        answer.is_ok_and(|answer| answer.status == 200)
    }

    pub async fn get(&self, path: &str) -> Value {
        self.must(Method::GET, path, "application/json", None).await
    }

    /// None: it does not exist.
    pub async fn find(&self, path: &str) -> Option<Value> {
        let answer = self.ask(Method::GET, path, "application/json", None).await.unwrap();
        if answer.status == 404 {
            return None;
        }
        assert_eq!(answer.status, 200, "{answer}");
        Some(answer.value())
    }

    pub async fn create(&self, path: &str, object: &Value) -> Value {
        self.must(Method::POST, path, "application/json", Some(object)).await
    }

    /// A merge patch.
    pub async fn patch(&self, path: &str, change: &Value) -> Value {
        self.must(Method::PATCH, path, "application/merge-patch+json", Some(change)).await
    }

    /// A merge patch of something that another may have removed.
    pub async fn patch_if_there(&self, path: &str, change: &Value) {
        let answer = self.ask(Method::PATCH, path, "application/merge-patch+json", Some(change)).await.unwrap();
        assert!(matches!(answer.status, 200 | 404), "{answer}");
    }

    /// Deletes it at once, whatever its grace; with a UID only this one.
    pub async fn delete(&self, path: &str, uid: Option<&str>) {
        let options = json!({"gracePeriodSeconds": 0, "preconditions": uid.map(|uid| json!({"uid": uid}))});
        let answer = self.ask(Method::DELETE, path, "application/json", Some(&options)).await.unwrap();
        assert!(matches!(answer.status, 200 | 202 | 404 | 409), "{answer}");
    }

    /// Follows the objects of a list. Without a version it begins with all that are there.
    pub async fn follow(&self, list: &str, query: &str) -> Feed {
        let url = format!("{}{list}?watch=true&timeoutSeconds={SOON}&{query}", self.server);
        let response = self.client.get(url).bearer_auth(&self.token).send().await.ok();
        Feed { response, text: Vec::new() }
    }

    /// The object once it is so.
    pub async fn until(&self, list: &str, name: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut feed = self.follow(list, &format!("fieldSelector=metadata.name={name}")).await;
        let mut last = Value::Null;
        while let Some((change, object)) = feed.next().await {
            if change == Change::There && is_so(&object) {
                return object;
            }
            last = object;
        }
        panic!("{list}/{name} is not as awaited within {SOON} s: {last:#}");
    }

    /// Waits until an object with this UID is gone.
    pub async fn until_gone(&self, list: &str, name: &str, uid: &str) {
        let Some(object) = self.find(&format!("{list}/{name}")).await else { return };
        if object["metadata"]["uid"] != uid {
            return;
        }
        let since = object["metadata"]["resourceVersion"].as_str().unwrap();
        let query = format!("fieldSelector=metadata.name={name}&resourceVersion={since}");
        let mut feed = self.follow(list, &query).await;
        while let Some((change, _)) = feed.next().await {
            if change == Change::Gone {
                return;
            }
        }
        panic!("{list}/{name} is still there after {SOON} s");
    }
}

/// What happens to the objects of a list, as it happens.
pub struct Feed {
    response: Option<reqwest::Response>,
    text: Vec<u8>,
}

impl Feed {
    /// None: it has ended, as each does some time.
    pub async fn next(&mut self) -> Option<(Change, Value)> {
        loop {
            if let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.text.drain(..=end).collect();
                let mut event: Value = serde_json::from_slice(&line).unwrap();
                let change = match event["type"].as_str() {
                    Some("ADDED" | "MODIFIED") => Change::There,
                    Some("DELETED") => Change::Gone,
                    _ => return None,
                };
                return Some((change, event["object"].take()));
            }
            let chunk = self.response.as_mut()?.chunk().await.ok()??;
            self.text.extend_from_slice(&chunk);
        }
    }
}

/// What happened to an object that is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Change {
    There,
    Gone,
}

/// An answer, whatever it is.
pub struct Answer {
    asked: String,
    pub status: u16,
    pub text: String,
}

impl Answer {
    fn value(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{self}: {error}"))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.asked, self.status, self.text)
    }
}
