//! The real network against TLS servers on this machine.

use std::convert::Infallible;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use poolwright::base::clock::Clock;
use poolwright::base::net::{Endpoint, Identity, NetError, Network, RealNetwork, Trust, collect, colons, fingerprint};
use poolwright::vim25::Client;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use secrecy::SecretString;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::script::{PASSWORD, Reply, Server, host, says};

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// Authorities and a certificate that they signed.
struct Certified {
    ca: tempfile::NamedTempFile,
    leaf: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

fn certified(names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Certified {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let mut ca = tempfile::NamedTempFile::new().unwrap();
    // Some text before it, as bundles have.
    write!(ca, "# our authority\n{}", issuer.pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
    change(&mut params);
    let leaf = params.signed_by(&key, &issuer).unwrap();
    Certified { ca, leaf: leaf.der().clone(), key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())) }
}

/// A server with this certificate; counts requests.
struct Served {
    authority: String,
    requests: Arc<AtomicUsize>,
    alpn: Arc<std::sync::Mutex<Vec<Option<Vec<u8>>>>>,
    /// The name that each client asked for, and the certificate that it showed.
    clients: Arc<std::sync::Mutex<Vec<Shown>>>,
}

type Shown = (Option<String>, Option<CertificateDer<'static>>);

async fn serve(
    certified: &Certified,
    answer: impl Fn(Request<Bytes>) -> Option<Answer> + Send + Sync + 'static,
) -> Served {
    serve_to(None, certified, answer).await
}

/// With `clients`, only those who show a certificate of that authority are served.
async fn serve_to(
    clients: Option<&Certified>,
    certified: &Certified,
    answer: impl Fn(Request<Bytes>) -> Option<Answer> + Send + Sync + 'static,
) -> Served {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(clients) => {
            let mut roots = rustls::RootCertStore::empty();
            for root in CertificateDer::pem_file_iter(clients.ca.path()).unwrap() {
                roots.add(root.unwrap()).unwrap();
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_single_cert(vec![certified.leaf.clone()], certified.key.clone_key()).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let served = Served {
        authority: listener.local_addr().unwrap().to_string(),
        requests: Arc::default(),
        alpn: Arc::default(),
        clients: Arc::default(),
    };
    let (requests, alpn, answer) = (Arc::clone(&served.requests), Arc::clone(&served.alpn), Arc::new(answer));
    let clients = Arc::clone(&served.clients);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let tls = stream.get_ref().1;
            alpn.lock().unwrap().push(tls.alpn_protocol().map(<[u8]>::to_vec));
            let shown = tls.peer_certificates().map(|chain| chain[0].clone().into_owned());
            clients.lock().unwrap().push((tls.server_name().map(str::to_owned), shown));
            let (requests, answer) = (Arc::clone(&requests), Arc::clone(&answer));
            let service = service_fn(move |request: Request<Incoming>| {
                requests.fetch_add(1, Ordering::SeqCst);
                let answer = Arc::clone(&answer);
                async move {
                    let (head, body) = request.into_parts();
                    let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
                    // No answer: the connection is closed.
                    answer(Request::from_parts(head, body)).ok_or_else(|| std::io::Error::other("closed"))
                }
            });
            let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection);
        }
    });
    served
}

fn whole(status: u16, body: impl Into<Bytes>) -> Answer {
    let body = Full::new(body.into()).boxed_unsync();
    Response::builder().status(status).body(body).unwrap()
}

fn hello(_: Request<Bytes>) -> Option<Answer> {
    Some(whole(200, "hello"))
}

fn request() -> Request<Bytes> {
    Request::post("/sdk").body(Bytes::from_static(b"<x/>")).unwrap()
}

async fn ask(authority: &str, trust: Trust) -> Result<Response<Bytes>, NetError> {
    let endpoint = Endpoint::new(authority, trust);
    let answer = RealNetwork.open(&endpoint)?.exchange(request()).await?;
    collect(authority, answer, 1 << 20).await
}

fn ca(certified: &Certified) -> Trust {
    Trust::CaFile(certified.ca.path().to_owned())
}

#[tokio::test]
async fn an_authority_and_the_name_make_trust() {
    let certified = certified(&["127.0.0.1", "localhost"], |_| {});
    let served = serve(&certified, |request| {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        Some(whole(200, format!("{method} {uri} {:?}", request.headers().get("host").unwrap())))
    })
    .await;
    let answer = ask(&served.authority, ca(&certified)).await.unwrap();
    assert_eq!(answer.body(), &format!("POST /sdk {:?}", served.authority));
    // HTTP/1.1 by negotiation: vCenter's SOAP is not spoken over HTTP/2.
    assert_eq!(*served.alpn.lock().unwrap(), [Some(b"http/1.1".to_vec())]);
}

#[tokio::test]
async fn a_name_that_is_not_in_the_certificate_is_told_with_the_thumbprint_to_pin() {
    let certified = certified(&["vc.example.net"], |_| {});
    let served = serve(&certified, hello).await;
    let error = ask(&served.authority, ca(&certified)).await.unwrap_err();
    let thumbprint = colons(&fingerprint(&certified.leaf));
    let expected = format!(
        "the certificate of {} is not trusted: it is not for the name 127.0.0.1 (SHA-256 {thumbprint})",
        served.authority
    );
    assert_eq!(error.to_string(), expected);
    assert!(error.not_sent());
    assert_eq!(served.requests.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_authority_that_nobody_named_is_told_with_the_thumbprint() {
    let shown = certified(&["127.0.0.1"], |_| {});
    let served = serve(&shown, hello).await;
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, "Somebody Else");
    let other = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(other.pem().as_bytes()).unwrap();
    let error = ask(&served.authority, Trust::CaFile(file.path().to_owned())).await.unwrap_err();
    let NetError::Untrusted { reason, thumbprint, .. } = error else { panic!("{error:?}") };
    assert_eq!(reason, "no authority that we trust has signed it");
    assert_eq!(thumbprint, colons(&fingerprint(&shown.leaf)));

    // The authorities of two vCenters have one name and different keys.
    let namesake = certified(&["127.0.0.1"], |_| {});
    let error = ask(&served.authority, ca(&namesake)).await.unwrap_err();
    let NetError::Untrusted { reason, thumbprint, .. } = error else { panic!("{error:?}") };
    assert_eq!(reason, "another authority of the same name has signed it");
    assert_eq!(thumbprint, colons(&fingerprint(&shown.leaf)));
}

#[tokio::test]
async fn an_expired_certificate_is_not_trusted() {
    let certified = certified(&["127.0.0.1"], |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
    let served = serve(&certified, hello).await;
    let error = ask(&served.authority, ca(&certified)).await.unwrap_err();
    let NetError::Untrusted { reason, .. } = error else { panic!("{error:?}") };
    assert_eq!(reason, "it has expired");
}

#[tokio::test]
async fn the_system_does_not_trust_an_authority_of_ours() {
    let certified = certified(&["127.0.0.1"], |_| {});
    let served = serve(&certified, hello).await;
    let error = ask(&served.authority, Trust::System).await.unwrap_err();
    // Setup, where this machine has no authorities at all.
    assert!(matches!(error, NetError::Untrusted { .. } | NetError::Setup { .. }), "{error:?}");
    assert_eq!(served.requests.load(Ordering::SeqCst), 0);
}

/// The certificate has another name, is expired, and comes from nowhere; the pin decides.
#[tokio::test]
async fn c11_a_pin_decides_over_the_name() {
    let certified = certified(&["other.example.net"], |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
    let served = serve(&certified, hello).await;
    let pin = fingerprint(&certified.leaf);
    let answer = ask(&served.authority, Trust::Thumbprint(pin)).await.unwrap();
    assert_eq!(answer.body(), "hello");

    let mut wrong = pin;
    wrong[31] ^= 1;
    let error = ask(&served.authority, Trust::Thumbprint(wrong)).await.unwrap_err();
    let NetError::Untrusted { reason, thumbprint, .. } = error else { panic!("{error:?}") };
    assert_eq!(reason, "it is another one than the pinned one");
    assert_eq!(thumbprint, colons(&pin));
}

/// A pin says which certificate, and its holder still has to prove that it has the key.
#[tokio::test]
async fn a_pinned_certificate_without_its_key_is_no_server() {
    let (shown, thief) = (certified(&["a.example.net"], |_| {}), certified(&["b.example.net"], |_| {}));
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let key = provider.key_provider.load_private_key(thief.key.clone_key()).unwrap();
    let stolen = rustls::sign::CertifiedKey::new(vec![shown.leaf.clone()], key);
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(stolen)));
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    let server = tokio::spawn(async move { acceptor.accept(listener.accept().await.unwrap().0).await.is_ok() });
    let error = ask(&authority, Trust::Thumbprint(fingerprint(&shown.leaf))).await.unwrap_err();
    assert!(matches!(error, NetError::Connect { .. }), "{error:?}");
    assert!(!server.await.unwrap());
}

#[tokio::test]
async fn c11_a_redirect_is_handed_up_and_not_followed() {
    let certified = certified(&["127.0.0.1"], |_| {});
    let elsewhere = serve(&certified, hello).await;
    let location = format!("https://{}/sdk", elsewhere.authority);
    let served = serve(&certified, move |_| {
        let mut answer = whole(307, "");
        answer.headers_mut().insert("location", location.parse().unwrap());
        Some(answer)
    })
    .await;
    let answer = ask(&served.authority, ca(&certified)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::TEMPORARY_REDIRECT);
    assert_eq!((served.requests.load(Ordering::SeqCst), elsewhere.requests.load(Ordering::SeqCst)), (1, 0));
}

#[tokio::test]
async fn a_connection_that_breaks_after_the_request_leaves_it_open_and_nothing_is_repeated() {
    let certified = certified(&["127.0.0.1"], |_| {});
    let served = serve(&certified, |_| None).await;
    let error = ask(&served.authority, ca(&certified)).await.unwrap_err();
    assert!(matches!(error, NetError::Broken { .. }) && !error.not_sent(), "{error:?}");
    assert_eq!(served.requests.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_port_where_nobody_listens_was_not_sent_to() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    drop(listener);
    let error = ask(&authority, Trust::Thumbprint([0; 32])).await.unwrap_err();
    assert!(matches!(error, NetError::Connect { .. }) && error.not_sent(), "{error:?}");
    assert!(error.to_string().contains(&authority), "{error}");
    assert!(says(&error).to_lowercase().contains("refused"), "{}", says(&error));
}

#[tokio::test]
async fn the_length_of_an_answer_is_that_of_its_unpacked_text() {
    let certified = certified(&["127.0.0.1"], |_| {});
    let served = serve(&certified, |request| {
        assert!(request.headers()["accept-encoding"].to_str().unwrap().contains("gzip"));
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(&vec![b'a'; 2 << 20]).unwrap();
        let mut answer = whole(200, packed.finish().unwrap());
        answer.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
        Some(answer)
    })
    .await;
    let error = ask(&served.authority, ca(&certified)).await.unwrap_err();
    assert!(matches!(error, NetError::TooLong { limit: 1_048_576, .. }), "{error:?}");
}

#[tokio::test]
async fn a_server_may_have_another_name_than_its_address() {
    let certified = certified(&["kubernetes.example.net"], |_| {});
    let served = serve(&certified, |request| {
        Some(whole(
            200,
            format!("{} {:?}", request.uri(), request.headers().get_all("host").iter().collect::<Vec<_>>()),
        ))
    })
    .await;
    let pem = std::fs::read_to_string(certified.ca.path()).unwrap();
    let named = |name: &str| Endpoint {
        server_name: Some(name.to_owned()),
        ..Endpoint::new(served.authority.clone(), Trust::CaText(pem.clone()))
    };
    let exchange = RealNetwork.open(&named("kubernetes.example.net")).unwrap();
    let answer = collect("", exchange.exchange(request()).await.unwrap(), 1 << 20).await.unwrap();
    // The server is asked for its name, and spoken to by its address.
    assert_eq!(answer.body(), &format!("/sdk [{:?}]", served.authority));
    assert_eq!(*served.clients.lock().unwrap(), [(Some("kubernetes.example.net".to_owned()), None)]);

    let error = RealNetwork.open(&named("other.example.net")).unwrap().exchange(request()).await.err().unwrap();
    assert!(error.to_string().contains("it is not for the name other.example.net"), "{error}");
    assert_eq!(served.requests.load(Ordering::SeqCst), 1);
    assert!(RealNetwork.open(&named("no name")).is_err());
}

#[tokio::test]
async fn a_certificate_is_shown_to_a_server_that_asks_for_it() {
    let certified_server = certified(&["127.0.0.1"], |_| {});
    let ours = certified(&["us"], |_| {});
    let served = serve_to(Some(&ours), &certified_server, hello).await;
    let identity =
        |key: &str| Identity { certificates: pem("CERTIFICATE", &ours.leaf), key: SecretString::from(key.to_owned()) };
    let endpoint = Endpoint::new(served.authority.clone(), ca(&certified_server));
    let error = RealNetwork.open(&endpoint).unwrap().exchange(request()).await;
    assert!(error.is_err(), "without a certificate nobody is served");
    let key = pem("PRIVATE KEY", ours.key.secret_der());
    let shows = Endpoint { identity: Some(identity(&key)), ..endpoint };
    let answer = RealNetwork.open(&shows).unwrap().exchange(request()).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(served.clients.lock().unwrap().last().unwrap().1.as_ref(), Some(&ours.leaf));

    // What is wrong with a key is told without the key.
    for key in ["", "MARKED-KEY", "-----BEGIN PRIVATE KEY-----\nTUFSS0VELUtFWQ==\n-----END PRIVATE KEY-----\n"] {
        let broken = Endpoint { identity: Some(identity(key)), ..shows.clone() };
        let Err(error) = RealNetwork.open(&broken) else { panic!("{key}") };
        let text = format!("{} {error:?} {broken:?}", says(&error));
        assert!(!text.contains("MARKED") && !text.contains("TUFSS0"), "{text}");
    }
}

fn pem(kind: &str, der: &[u8]) -> String {
    let encoded = serde_json::to_value(k8s_openapi::ByteString(der.to_vec())).unwrap();
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", encoded.as_str().unwrap())
}

#[tokio::test]
async fn a_body_comes_as_it_is_sent() {
    let certified = certified(&["127.0.0.1"], |_| {});
    let served = serve(&certified, |_| {
        let first = futures::stream::iter([Ok(Frame::data(Bytes::from_static(b"first")))]);
        // It never ends.
        let body = StreamBody::new(futures::StreamExt::chain(first, futures::stream::pending()));
        Some(Response::new(body.boxed_unsync()))
    })
    .await;
    let endpoint = Endpoint::new(served.authority.clone(), ca(&certified));
    let mut answer = RealNetwork.open(&endpoint).unwrap().exchange(request()).await.unwrap();
    let frame = answer.body_mut().frame().await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "first");
}

#[test]
fn trust_that_cannot_be_read_names_its_file() {
    let mut empty = tempfile::NamedTempFile::new().unwrap();
    write!(empty, "no certificate").unwrap();
    for path in [PathBuf::from("/nowhere/ca.pem"), empty.path().to_owned()] {
        let endpoint = Endpoint::new("vc.example.net", Trust::CaFile(path.clone()));
        let Err(error) = RealNetwork.open(&endpoint) else { panic!("{}", path.display()) };
        assert!(matches!(error, NetError::Setup { .. }) && error.not_sent(), "{error:?}");
        assert!(says(&error).contains(&path.display().to_string()), "{}", says(&error));
    }
}

#[test]
fn an_address_that_is_none_is_refused() {
    for authority in ["", "vc example", "https://vc.example.net", "vc.example.net/sdk"] {
        let endpoint = Endpoint::new(authority, Trust::Thumbprint([0; 32]));
        assert!(RealNetwork.open(&endpoint).is_err(), "{authority}");
    }
}

/// Everything that is logged on this thread, at every level, by everybody.
#[derive(Clone, Default)]
struct Logged(Arc<std::sync::Mutex<Vec<u8>>>);

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The whole way: client, TLS, HTTP, and back, with the log at its loudest.
#[tokio::test]
async fn neither_password_nor_session_is_logged_at_any_level() {
    let logged = Logged::default();
    let writer = logged.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    // With a single subscriber, tracing asks the thread on which an event is first met whether anybody
    // listens; other tests' threads would say no for all. With two it asks the subscribers.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let _guard = tracing::subscriber::set_default(subscriber);

    let script = Server::new(|seen| (seen.call == "SetField").then(|| Reply::ok("SetField", "")));
    let certified = certified(&["127.0.0.1"], |_| {});
    let vcenter = Arc::clone(&script);
    let served = serve(&certified, move |request| {
        let (status, headers, body) = vcenter.bytes(&request);
        let mut answer = whole(status, body);
        answer.headers_mut().extend(headers);
        Some(answer)
    })
    .await;
    let endpoint = Endpoint::new(served.authority.clone(), ca(&certified));
    let exchange = RealNetwork.open(&endpoint).unwrap();
    let password = SecretString::from(PASSWORD);
    let client =
        Client::connect(exchange, served.authority.clone(), None, "pw@vsphere.local", password, Clock::system())
            .await
            .unwrap();
    client.current_time().await.unwrap();
    client.set_custom_field(&host("host-1"), 101, "x").await.unwrap();
    script.forget_sessions();
    client.current_time().await.unwrap();
    client.logout().await.unwrap();
    assert_eq!((script.count("Login"), script.count("Logout")), (2, 1));

    let text = String::from_utf8(logged.0.lock().unwrap().clone()).unwrap();
    // It is loud, and ours is in it.
    assert!(text.contains("TRACE") && text.contains("logging in again") && text.contains("SetField"), "{text}");
    for secret in [PASSWORD, "marked-pa55", "&lt;word&gt;", "s0001", "s0002"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}
