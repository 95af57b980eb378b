use proptest::prelude::*;

use super::*;
use crate::document::{self, Document, Kind, to_yaml};
use crate::model::{HostKeyPin, ShellWay};

fn site(spec: &str) -> Result<Document<Site>, String> {
    let text = format!("apiVersion: poolwright/v1\nkind: Site\nmetadata: {{name: fra1}}\nspec:\n{spec}");
    let (documents, problems) = document::read("site.yaml", text.as_bytes());
    assert!(problems.is_empty(), "{problems:?}");
    read(&documents[0]).map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n"))
}

const CREDENTIALS: &str = "    credentials: {user: pw@vsphere.local, password: env:VC_PASSWORD}\n";

#[test]
fn a_site_with_defaults() {
    let site = site(&format!("  vcenter:\n    address: vc.lab\n{CREDENTIALS}")).unwrap().spec;
    assert_eq!(site.vcenter.address.authority(), "vc.lab");
    assert_eq!((site.vcenter.trust, site.vcenter.instance_uuid), (Trust::System, None));
    assert_eq!(model_pace(site.pace), (60, 30));
    assert_eq!(site.vcenter.credentials.user_ref(), None);
}

fn model_pace(pace: Pace) -> (u32, u32) {
    let pace = crate::model::Pace::from(pace);
    (pace.host_stable_s, pace.read_back_s)
}

#[test]
fn a_site_with_everything() {
    let spec = "  vcenter:\n    address: https://vc.lab:8443/\n    instanceUuid: 6F0E1C52-9de0-40cb-9c47-61d494229f4f\n    \
         trust: {caFile: ca.pem}\n    credentials: {user: env:VC_USER, password: file:/run/vc}\n  \
         pace: {hostStable: 2m, readBack: 5s}\n";
    let site = site(spec).unwrap().spec;
    assert_eq!(site.vcenter.address.authority(), "vc.lab:8443");
    assert_eq!(site.vcenter.instance_uuid.unwrap().as_str(), "6f0e1c52-9de0-40cb-9c47-61d494229f4f");
    assert!(matches!(site.vcenter.trust, Trust::CaFile(path) if path.value == "ca.pem"));
    assert_eq!(site.vcenter.credentials.user_ref().unwrap().as_str(), "env:VC_USER");
    assert_eq!(model_pace(site.pace), (120, 5));
}

#[test]
fn addresses() {
    for good in ["vc", "vc.lab", "10.0.0.1", "vc.lab:443", "[2001:db8::1]", "[::1]:8443", "HTTPS://vc.lab"] {
        assert!(good.parse::<Address>().is_ok(), "{good}");
    }
    for (bad, why) in [
        ("http://vc.lab", "http"),
        ("ftp://vc.lab", "scheme"),
        ("https://vc.lab/sdk", "path"),
        ("vc.lab/ui", "path"),
        ("root:hunter2@vc.lab", "credentials"),
        ("2001:db8::1", "brackets"),
        ("[vc]", "no IPv6"),
        ("[::1", "without"),
        ("vc:0", "port"),
        ("vc:+1", "port"),
        ("vc:65536", "port"),
        ("vc:", "port"),
        ("[::1]x", "port"),
        ("", "no DNS name"),
        ("https://", "no DNS name"),
        ("v c", "no DNS name"),
        ("münchen.lab", "no DNS name"),
        ("300.1.1.1", "no DNS name"),
        ("-vc", "no DNS name"),
    ] {
        let error = bad.parse::<Address>().unwrap_err().to_string();
        assert!(error.contains(why) && !error.contains("hunter2"), "{bad}: {error}");
    }
}

#[test]
fn c12_thumbprints_in_every_spelling_and_sha1_refused() {
    let plain = "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";
    let colons = plain.as_bytes().chunks(2).map(|b| std::str::from_utf8(b).unwrap()).collect::<Vec<_>>().join(":");
    let one: Thumbprint = plain.parse().unwrap();
    for text in [colons.clone(), colons.to_lowercase(), plain.to_uppercase(), one.to_string()] {
        assert_eq!(text.parse::<Thumbprint>().unwrap(), one, "{text}");
    }
    let sha1 = &plain[..40];
    for text in [sha1.to_owned(), colons[..59].to_owned()] {
        let error = text.parse::<Thumbprint>().unwrap_err();
        assert_eq!(error, ThumbprintError::Sha1);
        assert!(error.to_string().contains("SHA-256"));
    }
    for text in ["", "ab", &plain[1..], &format!("{plain}00"), &plain.replace("00", "zz"), &colons.replacen(':', "", 1)]
    {
        assert_eq!(text.parse::<Thumbprint>().unwrap_err(), ThumbprintError::Other, "{text}");
    }
}

#[test]
fn a_password_is_never_repeated() {
    for spec in [
        "  vcenter: {address: vc.lab, credentials: {user: a, password: hunter2}}\n",
        "  vcenter: {address: vc.lab, credentials: {user: a, passwrd: hunter2}}\n",
        "  vcenter: {address: 'x:hunter2@vc', credentials: {user: a, password: env:A}}\n",
        "  vcenter: {address: vc.lab, credentials: {user: a, password: [hunter2]}}\n",
        "  vcenter: {address: vc.lab, credentials: {user: a, password: 'env:'}}\n",
    ] {
        let shown = site(spec).unwrap_err();
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn a_shell_by_ssh_and_by_hand() {
    let shell = |shell: &str| site(&format!("  vcenter:\n    address: vc\n{CREDENTIALS}  shell: {shell}\n"));
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
    let users = "users: [{hosts: \"esx-gpu-*\", user: root, password: env:ESX}, {user: admin, key: file:/run/key}]";
    let direct = shell(&format!("{{way: direct, {users}, hostKeys: {{file: known_hosts, pins: {{esx-01: {key}}}}}}}"));
    let direct = direct.unwrap().spec.shell.unwrap();
    assert_eq!(direct.users.iter().map(|user| user.user.value.as_str()).collect::<Vec<_>>(), ["root", "admin"]);
    assert_eq!(direct.host_keys.pins["esx-01"].to_string(), key);
    let by_hand = shell("{way: handoff}").unwrap().spec.shell.unwrap();
    assert!(by_hand.way.value == ShellWay::Handoff && by_hand.users.is_empty());
    let pins = "hostKeys: {file: known_hosts}";
    for (wrong, why) in [
        ("{}", "is empty".to_owned()),
        ("{way: jump}", "jump".to_owned()),
        ("{way: direct}", "needs `users`".to_owned()),
        ("{way: direct, users: [{user: root, password: env:A}]}", "needs `hostKeys`".to_owned()),
        (&format!("{{way: direct, users: [{{user: root}}], {pins}}}"), "either".to_owned()),
        (&format!("{{way: direct, users: [{{user: a, password: env:A, key: env:B}}], {pins}}}"), "either".to_owned()),
        (&format!("{{way: direct, users: [{{user: a, password: hunter2}}], {pins}}}"), "by reference".to_owned()),
        (&format!("{{way: handoff, {pins}}}"), "go with".to_owned()),
        ("{way: direct, users: [{user: a, password: env:A}], hostKeys: {pins: {e: MD5:ab}}}", "MD5".to_owned()),
        ("{way: direct, users: [{user: a, passwort: hunter2}]}", "passwort".to_owned()),
    ] {
        let shown = shell(wrong).unwrap_err();
        assert!(shown.contains(&why) && shown.contains("site.yaml:8:"), "{wrong}: {shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn waits_are_bounded() {
    for bad in ["0s", "500ms", "25h", "-1s", "60", "soon"] {
        let shown =
            site(&format!("  vcenter:\n    address: vc\n{CREDENTIALS}  pace: {{readBack: {bad}}}\n")).unwrap_err();
        assert!(shown.contains("site.yaml:8:20"), "{shown}");
    }
}

fn any_site() -> impl Strategy<Value = Site> {
    let trust = prop_oneof![
        Just(Trust::System),
        "[^\\p{C}]{0,19}[!-~]".prop_map(|path| Trust::CaFile(at(path))),
        any::<[u8; 32]>().prop_map(|bytes| Trust::Thumbprint(at(Thumbprint(bytes)))),
    ];
    let uuid = proptest::option::of("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}");
    let user = "[^\\p{C}]{0,19}[!-~]";
    let reference = "(env:[!-<>-~]{1,20}|file:[!-~]{1,20}|exec:[!#-&(-\\[\\]-~]{1,20})";
    let waits = (1..=86_400u32, 1..=86_400u32);
    ("[a-z]{1,10}(:[1-9][0-9]{0,3})?", uuid, trust, user, reference, waits, any_shell(), any_guests()).prop_map(
        |(address, uuid, trust, user, password, (host_stable, read_back), shell, guests)| Site {
            vcenter: Vcenter {
                address: at(address.parse().unwrap()),
                instance_uuid: uuid.map(|uuid| at(uuid.parse().unwrap())),
                trust,
                credentials: Credentials { user: at(user), password: at(password.parse().unwrap()) },
            },
            shell,
            guests,
            pace: Pace { host_stable: Wait(host_stable), read_back: Wait(read_back), ..Pace::default() },
        },
    )
}

fn any_guests() -> impl Strategy<Value = Vec<Guest>> {
    let guest = ("[a-z]{1,10}", proptest::option::of("[^\\p{C}]{0,9}[!-~]"));
    proptest::collection::vec(guest, 0..3).prop_map(|guests| {
        let numbered = guests.into_iter().enumerate();
        let guest = |(number, (name, context)): (usize, (String, Option<String>))| Guest {
            name: at(format!("{name}-{number}")),
            kubeconfig: at(format!("file:/kube/{number}").parse().unwrap()),
            context: context.map(at),
        };
        numbered.map(guest).collect()
    })
}

fn any_shell() -> impl Strategy<Value = Option<Shell>> {
    let pin = any::<[u8; 32]>().prop_map(|pin| at(HostKey(HostKeyPin::Fingerprint(pin))));
    let keys = ("[^\\p{C}]{0,19}[!-~]", proptest::collection::btree_map("[a-z.0-9-]{1,12}", pin, 0..3))
        .prop_map(|(file, pins)| HostKeys { file: Some(at(file)), pins });
    let user = (
        proptest::option::of("esx-[a-z*]{1,6}"),
        "[a-z]{1,8}",
        any::<bool>(),
        "(env:[A-Z]|file:[a-z/])[A-Za-z_]{0,19}",
    )
        .prop_map(|(hosts, user, by_key, reference)| {
            let reference = Some(at(reference.parse().unwrap()));
            let (password, key) = if by_key { (None, reference) } else { (reference, None) };
            ShellUser { hosts: hosts.map(|hosts| at(hosts.parse().unwrap())), user: at(user), password, key }
        });
    let direct = (proptest::collection::vec(user, 1..3), keys).prop_map(|(users, host_keys)| {
        let way = at(ShellWay::Direct);
        Shell { way, users, host_keys }
    });
    let by_hand = Shell { way: at(ShellWay::Handoff), users: Vec::new(), host_keys: HostKeys::default() };
    proptest::option::of(prop_oneof![Just(by_hand), direct])
}

fn at<T>(value: T) -> crate::model::At<T> {
    let place = crate::model::Place { file: "-".into(), line: 0, column: 0 };
    crate::model::At::new(value, place)
}

proptest! {
    #[test]
    fn written_and_read_again_is_equal(site in any_site()) {
        let text = to_yaml(Kind::Site, "fra1", &site).unwrap();
        let (documents, problems) = document::read("site.yaml", text.as_bytes());
        prop_assert!(problems.is_empty(), "{problems:?}\n{text}");
        let again = read(&documents[0]).map_err(|p| TestCaseError::fail(format!("{p:?}\n{text}")))?;
        prop_assert_eq!(to_yaml(Kind::Site, "fra1", &again.spec).unwrap(), text);
    }

    #[test]
    fn values_never_panic(text in any::<String>()) {
        let _ = (text.parse::<Address>().is_ok(), text.parse::<Thumbprint>().is_ok());
        let _ = (text.parse::<InstanceUuid>().is_ok(), text.parse::<CredentialRef>().is_ok());
    }
}
