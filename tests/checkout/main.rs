//! Reading and writing source trees: archives, the index, git, folders. No test uses the network beyond 127.0.0.1.

mod archives;
mod folders;
mod index;
mod made;
mod repositories;
mod targets;
