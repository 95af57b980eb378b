//! Whom TLS trusts (authorities of the system, of a file or of a text, or one certificate), and who
//! we say we are.

use std::fmt::Display;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, OtherError, RootCertStore,
    SignatureScheme,
};
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};

use super::exchange::{Endpoint, Identity, Trust};
use crate::base::files;

/// A file of authorities is some certificates of 2 KB each; the bundle of a whole system has 250 KB.
const LONGEST_CA_FILE: u64 = 4 << 20;

/// SHA-256 of a certificate in DER.
pub fn fingerprint(certificate: &[u8]) -> [u8; 32] {
    Sha256::digest(certificate).into()
}

/// A SHA-256 as browsers and vSphere show it: `AB:CD:…`.
pub fn colons(fingerprint: &[u8; 32]) -> String {
    fingerprint.map(|byte| format!("{byte:02X}")).join(":")
}

/// Why a certificate was refused, with what it takes to pin it. Travels through rustls and reqwest.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{reason} (SHA-256 {thumbprint})")]
pub(super) struct Untrusted {
    pub(super) reason: String,
    pub(super) thumbprint: String,
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// The TLS client for this endpoint.
pub(super) fn tls_config(endpoint: &Endpoint) -> Result<ClientConfig, AnyError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let judge = match &endpoint.trust {
        Trust::Thumbprint(pin) => Judge::Pin(*pin),
        Trust::System => Judge::Authorities(Arc::new(rustls_platform_verifier::Verifier::new(Arc::clone(&provider))?)),
        Trust::CaFile(path) => {
            let pem = files::read_bytes(path, LONGEST_CA_FILE)?;
            authorities(&pem, &path.display(), &provider)?
        }
        Trust::CaText(pem) => authorities(pem.as_bytes(), &"the text of its authorities", &provider)?,
    };
    let verifier = Arc::new(Verifier { judge, provider: Arc::clone(&provider) });
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match &endpoint.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let (chain, key) = ours(identity)?;
            builder.with_client_auth_cert(chain, key)?
        }
    };
    // A configuration that is handed to reqwest has no ALPN of its own.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn authorities(pem: &[u8], whence: &dyn Display, provider: &Arc<CryptoProvider>) -> Result<Judge, AnyError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate?)?;
    }
    if roots.is_empty() {
        return Err(format!("{whence} holds no PEM certificate").into());
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build()?;
    Ok(Judge::Authorities(verifier))
}

/// What is wrong with our own key is said without the words of its parser, which may quote it.
fn ours(identity: &Identity) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), AnyError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(identity.certificates.as_bytes()).collect::<Result<_, _>>()?;
    if chain.is_empty() {
        return Err("our client certificate is no PEM certificate".into());
    }
    let key = PrivateKeyDer::from_pem_slice(identity.key.expose_secret().as_bytes());
    Ok((chain, key.map_err(|_| "the private key of our client certificate is no PEM key, or is encrypted")?))
}

#[derive(Debug)]
enum Judge {
    Authorities(Arc<dyn ServerCertVerifier>),
    Pin([u8; 32]),
}

#[derive(Debug)]
struct Verifier {
    judge: Judge,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let shown = fingerprint(end_entity);
        let reason = match &self.judge {
            // The pin decides over name, authority and date: whoever pinned it has looked (C11).
            Judge::Pin(pin) if *pin == shown => return Ok(ServerCertVerified::assertion()),
            Judge::Pin(_) => "it is another one than the pinned one".to_owned(),
            Judge::Authorities(authorities) => {
                match authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
                    Ok(verified) => return Ok(verified),
                    Err(TlsError::InvalidCertificate(error)) => words(&error, server_name),
                    Err(error) => error.to_string(),
                }
            }
        };
        let untrusted = Untrusted { reason, thumbprint: colons(&shown) };
        Err(TlsError::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(untrusted)))))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn words(error: &CertificateError, name: &ServerName<'_>) -> String {
    match error {
        CertificateError::UnknownIssuer => "no authority that we trust has signed it".to_owned(),
        // The authorities of two vCenters have one name ("CA") and different keys.
        CertificateError::BadSignature => "another authority of the same name has signed it".to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "it is not valid yet".to_owned(),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("it is not for the name {}", name.to_str())
        }
        other => other.to_string(),
    }
}
