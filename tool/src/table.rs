//! Tables in plain text.

use std::fmt;

use crate::output::harmless;

/// Rows of cells. The first row has the column headings.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(heads: [&str; N]) -> Self {
        Self { rows: vec![heads.map(str::to_owned).to_vec()] }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|it| harmless(&it)).to_vec());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fit_their_widest_cell_and_nothing_escapes() {
        let mut table = Table::new(["NAME", "LEFT"]);
        table.row(["a\u{1b}[31m\n".to_owned(), "1 µs".to_owned()]);
        table.row(["longer".to_owned(), String::new()]);
        assert_eq!(table.to_string(), "NAME     LEFT\na\u{FFFD}[31m\u{FFFD}  1 µs\nlonger\n");
    }
}
