//! Lua scripts. They are kept in readable files, and sent as one line.

/// A script, identified by its address: each script exists once in the program.
pub(crate) type Script = &'static &'static str;

/// A script as it is sent: the trimmed lines of its file, with one blank between them. Empty lines and
/// comment lines are left out. The compiler builds it, so there is nothing to set up at run time.
///
/// `N` is the length of the file. The line is no longer than that.
pub(super) struct ScriptText<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> ScriptText<N> {
    pub(super) const fn of(file: &str) -> Self {
        let mut script = Self { bytes: [0; N], length: 0 };
        let mut rest = file.as_bytes();
        while !rest.is_empty() {
            let (line, after) = first_line(rest);
            if !matches!(line, [] | [b'-', b'-', ..]) {
                script.add(line);
            }
            rest = after;
        }
        script
    }

    const fn add(&mut self, line: &[u8]) {
        if self.length > 0 {
            self.bytes[self.length] = b' ';
            self.length += 1;
        }
        let mut at = 0;
        while at < line.len() {
            self.bytes[self.length] = line[at];
            self.length += 1;
            at += 1;
        }
    }

    pub(super) const fn text(&self) -> &str {
        match str::from_utf8(self.bytes.split_at(self.length).0) {
            Ok(text) => text,
            Err(_) => panic!("whole lines of a text are a text"),
        }
    }
}

/// The first line without the blanks around it, and the text after it.
const fn first_line(text: &[u8]) -> (&[u8], &[u8]) {
    let mut end = 0;
    while end < text.len() && text[end] != b'\n' {
        end += 1;
    }
    let (line, rest) = text.split_at(end);
    match rest {
        [_, after @ ..] => (line.trim_ascii(), after),
        [] => (line.trim_ascii(), rest),
    }
}

/// A script made of the files beside the calling file, in this order, and an optional last line.
macro_rules! script {
    ($($file:literal),+ $(; $end:literal)?) => {{
        const FILE: &str = concat!($(include_str!($file)),+ $(, $end)?);
        const LINE: $crate::protocol::command::script::ScriptText<{ FILE.len() }> =
            $crate::protocol::command::script::ScriptText::of(FILE);
        LINE.text()
    }};
}
pub(super) use script;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_sent_without_comments_and_layout() {
        const FILE: &str = "-- What it does.\n\n  if a then\n\treturn -1\n  -- more\nend  \n";
        const SCRIPT: ScriptText<{ FILE.len() }> = ScriptText::of(FILE);
        assert_eq!(SCRIPT.text(), "if a then return -1 end");
        assert_eq!(ScriptText::<0>::of("").text(), "");
        assert_eq!(ScriptText::<9>::of("return 0").text(), "return 0");
    }
}
