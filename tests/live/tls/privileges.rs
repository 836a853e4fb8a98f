//! A program that has more rights than the user who starts it. Its environment does not choose the trusted
//! authorities, nor the credentials.

use crate::support::{Authority, Cluster, Program};

const PASSWORD: &str = "s3same-0pen";

/// The output of `tests/programs/c/privileged.c`.
struct Said {
    is_secure: bool,
    of_password: String,
    of_lock: String,
}

fn run(program: &Program, variables: &[(&'static str, String)], cluster: &Cluster) -> Said {
    let mut running = program.start_in(variables, &cluster.urls());
    let mut says = || running.hears_a_word();
    let said = Said { is_secure: says() == "1", of_password: says(), of_lock: says() };
    running.ends_well();
    said
}

/// By the variables that OpenSSL has for it.
fn trusting(cluster: &Cluster) -> [(&'static str, String); 2] {
    let file = cluster.authority_file().expect("they have TLS");
    let (directory, _) = file.rsplit_once('/').expect("it is a path");
    [("SSL_CERT_FILE", file.clone()), ("SSL_CERT_DIR", directory.to_owned())]
}

fn privileged() -> Program {
    Program::compile("privileged").make_setgid()
}

#[track_caller]
fn assert_is_secure(said: &Said) {
    assert!(
        said.is_secure,
        "the system does not make the program setgid: is the directory for temporary files (TMPDIR) mounted \
         with nosuid, or is this process forbidden to gain rights (no_new_privs)?"
    );
}

#[test]
fn the_environment_cannot_change_the_trust_of_setgid() {
    let cluster = Cluster::start_tls(3);
    let variables = trusting(&cluster);
    let (plain, setgid) = (Program::compile("privileged"), privileged());
    for variable in &variables {
        let said = run(&plain, std::slice::from_ref(variable), &cluster);
        assert_eq!((said.is_secure, &*said.of_lock), (false, "REDLOCK_OK:"));
        let said = run(&setgid, std::slice::from_ref(variable), &cluster);
        assert_is_secure(&said);
        assert!(said.of_lock.starts_with("REDLOCK_UNREACHABLE: "), "{}", said.of_lock);
        assert!(said.of_lock.contains("unknown authority"), "{}", said.of_lock);
        assert_eq!(cluster.having("r"), 0);
    }
}

/// A variable that names nothing takes nothing away, either.
#[test]
fn a_setgid_program_trusts_the_system_authorities() {
    let (cluster, others) = (Cluster::start_tls(3), Authority::new());
    let nowhere =
        [("SSL_CERT_FILE", "/nowhere".to_owned()), ("SSL_CERT_DIR", "/nowhere".to_owned())];
    let said = run(&privileged(), &nowhere, &cluster);
    assert_is_secure(&said);
    let stranger = [("SSL_CERT_FILE", others.file()), ("SSL_CERT_DIR", others.file() + ".d")];
    let refused = run(&Program::compile("privileged"), &stranger, &cluster);
    // Not the words for "the system trusts no authority" if this system trusts one.
    let has_some = std::path::Path::new("/etc/ssl/certs/ca-certificates.crt").exists();
    let named = |words: &str| words.contains("signed by an unknown authority");
    assert!(named(&refused.of_lock), "{}", refused.of_lock);
    assert_eq!(named(&said.of_lock), has_some, "{}", said.of_lock);
}

/// An authority that the program names itself is trusted as usual.
#[test]
fn a_setgid_program_can_name_its_authorities() {
    let cluster = Cluster::start_tls(3);
    let named = [("REDLOCK_TEST_TLS_CA", cluster.authority_file().expect("they have TLS"))];
    let said = run(&privileged(), &named, &cluster);
    assert_is_secure(&said);
    assert_eq!(said.of_lock, "REDLOCK_OK:");
}

#[test]
fn the_environment_cannot_change_the_login_of_setgid() {
    let cluster = Cluster::start_tls(3);
    let variables = [("A_PASSWORD", PASSWORD.to_owned())];
    let said = run(&Program::compile("privileged"), &variables, &cluster);
    assert_eq!((said.is_secure, &*said.of_password), (false, "REDLOCK_OK:"));
    let said = run(&privileged(), &variables, &cluster);
    assert_is_secure(&said);
    let words = &said.of_password;
    assert!(words.starts_with("REDLOCK_INVALID_ARGUMENT: password_variable "), "{words}");
    assert!(words.contains("setgid") && !words.contains(PASSWORD), "{words}");
}
