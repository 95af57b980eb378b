//! Where a cluster is, whom to trust and who we are: from a kubeconfig.

use std::fmt;
use std::path::{Path, PathBuf};

use http::Uri;
use k8s_openapi::ByteString;
use kube::config::{AuthInfo, Cluster, ExecConfig, ExecInteractiveMode, Kubeconfig, KubeconfigError};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use super::credential::{Credential, Plugin};
use crate::base::files::{self, FileError};
use crate::base::logging;
use crate::base::net::{Endpoint, Identity, Trust};
use crate::model::nearest;

/// Longest certificate or key that is read, in bytes: chains have some certificates of 2 KB each.
const LONGEST_PEM: u64 = 1 << 20;

/// How one cluster is reached: what one context of a kubeconfig says.
#[derive(Clone)]
pub struct Access {
    pub(super) endpoint: Endpoint,
    /// What stands before the path of every request, without a slash at its end.
    pub(super) prefix: String,
    pub(super) credential: Credential,
}

/// Without a secret.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("authority", &self.endpoint.authority).finish_non_exhaustive()
    }
}

/// What a kubeconfig does not say, or says in a way that is not followed. Holds no secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// Not YAML, or not in the form of a kubeconfig. What stands there is not quoted: it may be a
    /// token.
    #[error("the kubeconfig cannot be read{}", place(*.line, *.column))]
    Unreadable {
        /// Line; 0 if it is not known.
        line: u64,
        /// Column.
        column: u64,
    },
    /// No context was asked for, and the file has no current one.
    #[error("the kubeconfig has no current-context{}", choose(names))]
    NoContext {
        /// The contexts that it has.
        names: Vec<String>,
    },
    /// A name that is not there.
    #[error("the kubeconfig has no {kind} `{name}`{}", meant(.near.as_deref()))]
    NotThere {
        /// Context, cluster or user.
        kind: &'static str,
        /// The name.
        name: String,
        /// The name that it was most likely meant to be.
        near: Option<String>,
    },
    /// One name, two meanings.
    #[error("the kubeconfig has two of {kind} `{name}`")]
    Doubled {
        /// Context, cluster or user.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// Something that must be given is not.
    #[error("{whose} has no {field}")]
    Missing {
        /// Cluster or user, with its name.
        whose: String,
        /// What.
        field: &'static str,
    },
    /// Something that is not followed, and must not be passed over.
    #[error("{whose} has {field}: {why}")]
    Refused {
        /// Cluster or user, with its name.
        whose: String,
        /// What.
        field: &'static str,
        /// Why it is not followed, and what instead.
        why: &'static str,
    },
    /// A value that is none.
    #[error("{field} of {whose} {problem}")]
    Value {
        /// Cluster or user, with its name.
        whose: String,
        /// Which.
        field: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A file that it refers to.
    #[error("cannot read {field} of {whose}")]
    File {
        /// Cluster or user, with its name.
        whose: String,
        /// Which.
        field: &'static str,
        /// Why.
        #[source]
        source: FileError,
    },
}

fn place(line: u64, column: u64) -> String {
    if line == 0 { String::new() } else { format!(": see line {line}, column {column}") }
}

fn choose(names: &[String]) -> String {
    if names.is_empty() { ", and no context at all".to_owned() } else { format!("; it has {}", names.join(", ")) }
}

fn meant(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!("; nearest: {near}"))
}

impl Access {
    /// Reads a kubeconfig. Without a `context` its current one is taken; paths in it are relative to
    /// `dir`, the directory of the file.
    ///
    /// # Errors
    /// [`AccessError`]: what is missing, wrong, or not followed.
    pub fn parse(text: &str, context: Option<&str>, dir: Option<&Path>) -> Result<Self, AccessError> {
        let file = Kubeconfig::from_yaml(text).map_err(|error| unreadable(&error))?;
        let names = || file.contexts.iter().map(|context| context.name.clone()).collect();
        let chosen = context.or(file.current_context.as_deref()).filter(|name| !name.is_empty());
        let chosen = chosen.ok_or_else(|| AccessError::NoContext { names: names() })?;
        let context = one("context", chosen, &file.contexts, |c| &c.name, |c| c.context.as_ref())?;
        let user = context.user.as_deref().filter(|user| !user.is_empty());
        let user = user.ok_or_else(|| missing(&format!("context `{chosen}`"), "user"))?;
        let cluster = one("cluster", &context.cluster, &file.clusters, |c| &c.name, |c| c.cluster.as_ref())?;
        let info = one("user", user, &file.auth_infos, |u| &u.name, |u| u.auth_info.as_ref())?;
        let cluster = Reader { whose: format!("cluster `{}`", context.cluster), dir, of: cluster };
        let user = Reader { whose: format!("user `{user}`"), dir, of: info };
        let (authority, prefix, server) = cluster.server()?;
        let trust = cluster.trust()?;
        let identity = user.identity()?;
        let credential = user.credential(&cluster, &server, identity.is_some())?;
        let server_name = cluster.of.tls_server_name.clone().filter(|name| !name.is_empty());
        Ok(Self { endpoint: Endpoint { authority, trust, server_name, identity }, prefix, credential })
    }

    /// Host, or host and port, of the API server.
    pub fn authority(&self) -> &str {
        &self.endpoint.authority
    }
}

fn unreadable(error: &KubeconfigError) -> AccessError {
    let place = match error {
        KubeconfigError::Parse(error) => error.location(),
        _ => None,
    };
    let (line, column) = place.map_or((0, 0), |place| (place.line(), place.column()));
    AccessError::Unreadable { line, column }
}

fn missing(whose: &str, field: &'static str) -> AccessError {
    AccessError::Missing { whose: whose.to_owned(), field }
}

/// The one entry of a list that has this name.
fn one<'a, T, U>(
    kind: &'static str,
    name: &str,
    all: &'a [T],
    name_of: impl Fn(&T) -> &String,
    content: impl Fn(&'a T) -> Option<&'a U>,
) -> Result<&'a U, AccessError> {
    let mut found = all.iter().filter(|entry| name_of(entry) == name);
    match (found.next(), found.next()) {
        (Some(entry), None) => content(entry).ok_or_else(|| missing(&format!("{kind} `{name}`"), "content")),
        (Some(_), Some(_)) => Err(AccessError::Doubled { kind, name: name.to_owned() }),
        (None, _) => {
            let near = nearest(name, all.iter().map(|entry| name_of(entry).as_str())).map(str::to_owned);
            Err(AccessError::NotThere { kind, name: name.to_owned(), near })
        }
    }
}

/// A part of the file, with what its errors and paths need.
struct Reader<'a, T> {
    whose: String,
    dir: Option<&'a Path>,
    of: &'a T,
}

impl<T> Reader<'_, T> {
    fn value(&self, field: &'static str, problem: &'static str) -> AccessError {
        AccessError::Value { whose: self.whose.clone(), field, problem }
    }

    fn refused(&self, field: &'static str, why: &'static str) -> AccessError {
        AccessError::Refused { whose: self.whose.clone(), field, why }
    }

    fn path(&self, field: &'static str, path: &str) -> Result<PathBuf, AccessError> {
        match self.dir {
            _ if Path::new(path).is_absolute() => Ok(path.into()),
            Some(dir) => Ok(dir.join(path)),
            None => {
                Err(self.value(field, "is a relative path, and the kubeconfig is no file that it could be relative to"))
            }
        }
    }

    /// PEM in base64, or in a file; what is given as data counts.
    fn pem(
        &self,
        data: (&'static str, Option<&str>),
        file: (&'static str, Option<&String>),
    ) -> Result<Option<String>, AccessError> {
        let (field, bytes) = match (data, file) {
            ((field, Some(data)), _) if !data.is_empty() => {
                let decoded: Result<ByteString, _> = serde_json::from_value(json!(data.trim()));
                (field, decoded.map_err(|_| self.value(field, "is not base64"))?.0)
            }
            (_, (field, Some(path))) if !path.is_empty() => {
                let path = self.path(field, path)?;
                let fail = |source| AccessError::File { whose: self.whose.clone(), field, source };
                (field, files::read_bytes(&path, LONGEST_PEM).map_err(fail)?)
            }
            _ => return Ok(None),
        };
        match String::from_utf8(bytes) {
            Ok(text) if text.contains("-----BEGIN ") => Ok(Some(text)),
            _ => Err(self.value(field, "is not PEM")),
        }
    }
}

impl Reader<'_, Cluster> {
    /// Authority, path, and the whole address.
    fn server(&self) -> Result<(String, String, String), AccessError> {
        let field = "server";
        let text = self.of.server.as_deref().filter(|server| !server.is_empty());
        let text = text.ok_or_else(|| missing(&self.whose, field))?;
        let uri: Uri = text.parse().map_err(|_| self.value(field, "is no address"))?;
        match uri.scheme_str() {
            Some("https") => {}
            Some("http") => return Err(self.value(field, "asks for http, and credentials are sent over HTTPS only")),
            _ => return Err(self.value(field, "does not begin with https://")),
        }
        let authority = uri.authority().ok_or_else(|| self.value(field, "is no address"))?;
        if authority.as_str().contains('@') {
            return Err(self.value(field, "holds a user, which is not followed"));
        }
        if uri.query().is_some() {
            return Err(self.value(field, "has a query, which is not followed"));
        }
        Ok((authority.to_string(), uri.path().trim_end_matches('/').to_owned(), text.to_owned()))
    }

    fn trust(&self) -> Result<Trust, AccessError> {
        let cluster = self.of;
        if cluster.insecure_skip_tls_verify == Some(true) {
            let why = "tokens are not sent to a server that nobody vouches for; give certificate-authority-data";
            return Err(self.refused("insecure-skip-tls-verify", why));
        }
        if cluster.proxy_url.as_ref().is_some_and(|url| !url.is_empty()) {
            return Err(self.refused("proxy-url", "proxies are taken from the environment (HTTPS_PROXY) only"));
        }
        let data = ("certificate-authority-data", cluster.certificate_authority_data.as_deref());
        let file = ("certificate-authority", cluster.certificate_authority.as_ref());
        Ok(self.pem(data, file)?.map_or(Trust::System, Trust::CaText))
    }
}

impl Reader<'_, AuthInfo> {
    fn identity(&self) -> Result<Option<Identity>, AccessError> {
        let user = self.of;
        let data = ("client-certificate-data", user.client_certificate_data.as_deref());
        let certificates = self.pem(data, ("client-certificate", user.client_certificate.as_ref()))?;
        let data = ("client-key-data", user.client_key_data.as_ref().map(ExposeSecret::expose_secret));
        let key = self.pem(data, ("client-key", user.client_key.as_ref()))?;
        match (certificates, key) {
            (Some(certificates), Some(key)) => Ok(Some(Identity { certificates, key: key.into() })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(missing(&self.whose, "client-key for its client-certificate")),
            (None, Some(_)) => Err(missing(&self.whose, "client-certificate for its client-key")),
        }
    }

    fn credential(
        &self,
        cluster: &Reader<'_, Cluster>,
        server: &str,
        identified: bool,
    ) -> Result<Credential, AccessError> {
        let user = self.of;
        if user.username.is_some() || user.password.is_some() {
            return Err(self.refused("username and password", "Kubernetes has had no such login since 1.19"));
        }
        if user.auth_provider.is_some() {
            return Err(self.refused("auth-provider", "it was replaced by exec plugins in Kubernetes 1.26"));
        }
        if user.impersonate.is_some() || user.impersonate_groups.is_some() || user.impersonate_uid.is_some() {
            return Err(self.refused("as", "we act as nobody else; give a user of its own"));
        }
        if let Some(path) = user.token_file.as_ref().filter(|path| !path.is_empty()) {
            return Ok(Credential::File(self.path("tokenFile", path)?));
        }
        if let Some(token) = user.token.as_ref().filter(|token| !token.expose_secret().is_empty()) {
            if !token.expose_secret().bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(self.value("token", "holds characters that no token has"));
            }
            logging::hide(token);
            return Ok(Credential::Token(token.clone()));
        }
        match &user.exec {
            Some(exec) => self.plugin(exec, cluster, server).map(Credential::plugin),
            None if identified => Ok(Credential::None),
            None => Err(missing(&self.whose, "token, client certificate or exec plugin")),
        }
    }

    fn plugin(&self, exec: &ExecConfig, cluster: &Reader<'_, Cluster>, server: &str) -> Result<Plugin, AccessError> {
        let command = exec.command.as_deref().filter(|command| !command.is_empty());
        let command = command.ok_or_else(|| missing(&self.whose, "command of its exec plugin"))?;
        let version = exec.api_version.as_deref().unwrap_or_default();
        if !PLUGIN_VERSIONS.contains(&version) {
            return Err(
                self.value("apiVersion of the exec plugin", "is not client.authentication.k8s.io/v1 or v1beta1")
            );
        }
        if exec.interactive_mode == Some(ExecInteractiveMode::Always) {
            return Err(self.refused("an exec plugin with interactiveMode Always", "nobody is there to answer it"));
        }
        // As kubectl does: a bare name is looked up in PATH, a path is relative to the file.
        let command = match command.contains(std::path::MAIN_SEPARATOR) {
            true => self.path("command of the exec plugin", command)?.display().to_string(),
            false => command.to_owned(),
        };
        let mut spec = json!({ "interactive": false });
        if exec.provide_cluster_info {
            let mut about = json!({ "server": server });
            if let Trust::CaText(pem) = cluster.trust()? {
                about["certificate-authority-data"] = json!(ByteString(pem.into_bytes()));
            }
            if let Some(name) = &cluster.of.tls_server_name {
                about["tls-server-name"] = json!(name);
            }
            spec["cluster"] = about;
        }
        let info = json!({ "apiVersion": version, "kind": "ExecCredential", "spec": spec });
        let mut environment = vec![("KUBERNETES_EXEC_INFO".to_owned(), SecretString::from(info.to_string()))];
        for pair in exec.env.iter().flatten() {
            let (Some(name), Some(value)) = (pair.get("name"), pair.get("value")) else {
                return Err(self.value("env of the exec plugin", "has an entry without name or value"));
            };
            environment.push((name.clone(), SecretString::from(value.as_str())));
        }
        let arguments = exec.args.clone().unwrap_or_default();
        Ok(Plugin::new(command, arguments, environment, exec.install_hint.clone()))
    }
}

/// The versions in which a plugin can be spoken to; v1alpha1 ended with Kubernetes 1.24.
const PLUGIN_VERSIONS: [&str; 2] = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];
