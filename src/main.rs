//! The command line of mambapatch.

fn main() -> std::process::ExitCode {
    mambapatch::cli::run()
}
