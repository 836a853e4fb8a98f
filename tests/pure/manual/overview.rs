//! The page in section 7, where a reader begins. It has the comment at the beginning of the header, a list of
//! everything that the header declares, and the program of docs/c.md.

use std::fs;

use crate::header::{Block, Header, Item, Kind};
use crate::pages::{blocks, library, list, title};
use crate::prose::verbatim;
use crate::root;

const LINKING: &str = "\
.SH LINKING
A C or C++ compiler is told where things are by
.BR pkg\\-config (1):
.PP
.RS 4
.EX
cc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs redlock)
.EE
.RE
.PP
A static program is made by
.B cc \\-static
with what pkg\\-config says with
.BR \\-\\-static .
CMake finds a package with the targets
.B redlock::redlock
and
.BR redlock::static :
.PP
.RS 4
.EX
find_package(redlock REQUIRED)
target_link_libraries(program PRIVATE redlock::redlock)
.EE
.RE
.PP
C++ programs may include
.B redlock.hpp
instead, which has guards and durations for all of this.
It needs nothing else to link with.
";

const SECURITY: &str = "\
.SH TLS AND PASSWORDS
Servers whose URLs begin with rediss:// are talked to over TLS.
Their certificates have to come from those whom the system trusts, or from those in the file that
.BR RedLock_SetTlsCa (3)
names, and have to be for the host in the URL or the name in
.BR RedLock_SetTlsServerName (3).
Servers that want a certificate of ours are shown that of
.BR RedLock_SetTlsCertificate (3).
.PP
Users and passwords stand in the URLs, or for all servers in
.BR RedLock_SetCredentials (3),
in variables of the environment that
.BR RedLock_SetCredentialsFromEnv (3)
names, or are asked for by
.BR RedLock_SetPasswordCallback (3).
";

pub(crate) fn page(header: &Header) -> String {
    let mut text = header.overview.iter();
    let Some(Block::Paragraph(first)) = text.next() else { panic!("it begins with what this is") };
    let (name, what) = first.trim_end_matches('.').split_once(": ").expect("its name comes first");
    let mut made = title(name, 7);
    made.push_str(&format!(".SH NAME\n{name} \\- {what}\n"));
    made.push_str(library());
    made.push_str(".SH SYNOPSIS\n.nf\n.B #include <redlock.h>\n.fi\n.SH DESCRIPTION\n");
    made.push_str(&blocks(header, &header.overview[1..]));
    made.push_str(SECURITY);
    made.push_str(LINKING);
    made.push_str(".SH TYPES\n");
    made.push_str(&list(header, header.items.iter().filter(|it| is_type(it))));
    for (heading, of) in [
        ("FUNCTIONS", "RedLock"),
        ("FUNCTIONS ON A LEASE", "RedLockLease"),
        ("STATUS", "RedLockStatus"),
    ] {
        let functions = header.items.iter().filter(|it| it.is_function() && it.is_of(of));
        made.push_str(&format!(".SH {heading}\n{}", list(header, functions)));
    }
    made.push_str(&format!(".SH EXAMPLES\n.EX\n{}.EE\n", verbatim(&example())));
    made + ".SH SEE ALSO\n.BR RedLock_Lock (3),\n.BR RedLockStatus (3),\n.BR pkg\\-config (1)\n"
}

fn is_type(item: &Item) -> bool {
    matches!(item.kind, Kind::Handle | Kind::Callback | Kind::Enumeration(_))
}

/// The first C program in docs/c.md.
fn example() -> String {
    let page = fs::read_to_string(root().join("docs/c.md")).expect("docs/c.md");
    let (_, after) = page.split_once("\n```c\n").expect("the page shows C");
    let (program, _) = after.split_once("\n```").expect("the block ends");
    program.to_owned()
}
