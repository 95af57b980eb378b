//! Whom TLS trusts: authorities of the system, authorities of a file, or one certificate.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, OtherError, RootCertStore,
    SignatureScheme,
};
use sha2::{Digest, Sha256};

use super::exchange::Trust;
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

/// The TLS client for this trust.
pub(super) fn tls_config(trust: &Trust) -> Result<ClientConfig, Box<dyn std::error::Error + Send + Sync>> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let judge = match trust {
        Trust::Thumbprint(pin) => Judge::Pin(*pin),
        Trust::System => Judge::Authorities(Arc::new(rustls_platform_verifier::Verifier::new(Arc::clone(&provider))?)),
        Trust::CaFile(path) => {
            let pem = files::read_bytes(path, LONGEST_CA_FILE)?;
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                roots.add(certificate?)?;
            }
            if roots.is_empty() {
                return Err(format!("{} holds no PEM certificate", path.display()).into());
            }
            Judge::Authorities(
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build()?,
            )
        }
    };
    let verifier = Arc::new(Verifier { judge, provider: Arc::clone(&provider) });
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    // A configuration that is handed to reqwest has no ALPN of its own.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
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
