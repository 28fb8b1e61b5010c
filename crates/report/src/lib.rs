//! Answers and findings in the form in which somebody reads them: text for a terminal, JSON, SARIF, Markdown,
//! Graphviz. Every front end gives the same words for the same answer.
//!
//! Everything here makes a `String` out of data. It opens no stream, takes no arguments and asks no terminal:
//! colour and width come in as a [`style::Style`]. The only files it reads are sources, to quote their lines.
//!
//! [`finding`] renders any finding for people, [`json`] for programs, [`sarif`] for code review tools; [`list`] is
//! the long list of findings that a whole source tree gives. [`crash`], [`why`], [`about`], [`slice`], [`step`],
//! [`scene`], [`whatif`], [`anomalies`], [`model`], [`count`], [`expose`] and [`contents`] show what investigations
//! answer, [`run`] and [`rules`] how a run went, [`correlate`] and [`linearize`] what these analyses say. [`fit`]
//! knows about width, [`source`] about lines of files, [`shell`] about command lines.

#![forbid(unsafe_code)]

pub mod about;
pub mod anomalies;
pub mod contents;
pub mod correlate;
pub mod count;
pub mod crash;
pub mod expose;
pub mod finding;
pub mod fit;
pub mod json;
pub mod linearize;
pub mod list;
pub mod model;
pub mod rules;
pub mod run;
pub mod sarif;
pub mod scene;
pub mod shell;
pub mod slice;
pub mod source;
pub mod step;
pub mod style;
pub mod whatif;
pub mod why;
