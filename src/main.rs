//! The binary: hands the process over to [`poolwright::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    poolwright::cli::main()
}
