//! What is the same for several GPUs is said once: `passthrough off: 0000:17:00.0, 0000:1f:00.0`.

use crate::model::PciAddress;

/// Words with the functions that they hold for, as `WORDS: ADDRESS, ADDRESS`; in the order in which
/// the words come up first.
pub(super) fn by_words(items: impl IntoIterator<Item = (PciAddress, String)>) -> Vec<String> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (address, words) in items {
        match groups.iter_mut().find(|(known, _)| *known == words) {
            Some((_, addresses)) => addresses.push(address.to_string()),
            None => groups.push((words, vec![address.to_string()])),
        }
    }
    groups.into_iter().map(|(words, addresses)| format!("{words}: {}", addresses.join(", "))).collect()
}

/// Lines of the form `ADDRESS WORDS`, as the planner gives what is pending or waited for, with equal
/// words of several functions in one line. A line of another form stays as it is, in its place.
pub fn grouped(lines: &[String]) -> Vec<String> {
    let mut told: Vec<Told> = Vec::new();
    for line in lines {
        let of = line.split_once(' ').and_then(|(address, words)| Some((address.parse().ok()?, words)));
        let Some((address, words)) = of else {
            told.push(Told::Line(line.clone()));
            continue;
        };
        let known = told.iter_mut().find_map(|told| match told {
            Told::Function(of, all) if *of == address => Some(all),
            Told::Function(..) | Told::Line(_) => None,
        });
        match known {
            Some(all) => {
                all.push_str(", ");
                all.push_str(words);
            }
            None => told.push(Told::Function(address, words.to_owned())),
        }
    }
    told.chunk_by(|a, b| matches!((a, b), (Told::Function(..), Told::Function(..)))).flat_map(lines_of).collect()
}

/// A line, or all that was said of one function.
enum Told {
    Line(String),
    Function(PciAddress, String),
}

fn lines_of(run: &[Told]) -> Vec<String> {
    let functions = run.iter().filter_map(|told| match told {
        Told::Function(address, words) => Some((*address, words.clone())),
        Told::Line(_) => None,
    });
    let lines = run.iter().filter_map(|told| match told {
        Told::Line(line) => Some(line.clone()),
        Told::Function(..) => None,
    });
    lines.chain(by_words(functions)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_words_of_several_functions_are_one_line() {
        let lines = [
            "0000:17:00.0 passthrough off",
            "0000:17:00.0 type sharedDirect",
            "0000:1f:00.0 passthrough off",
            "0000:1f:00.0 type sharedDirect",
            "0000:27:00.0 type sharedDirect",
        ];
        assert_eq!(
            grouped(&lines.map(str::to_owned)),
            ["passthrough off, type sharedDirect: 0000:17:00.0, 0000:1f:00.0", "type sharedDirect: 0000:27:00.0"]
        );
    }

    #[test]
    fn what_is_of_no_function_stays_in_its_place() {
        let lines = ["the host is notResponding", "0000:17:00.0 x", "zz:17 y", "0000:1f:00.0 x"];
        assert_eq!(
            grouped(&lines.map(str::to_owned)),
            ["the host is notResponding", "x: 0000:17:00.0", "zz:17 y", "x: 0000:1f:00.0"]
        );
        assert!(grouped(&[]).is_empty());
    }
}
