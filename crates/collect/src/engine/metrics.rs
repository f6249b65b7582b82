//! The metrics of the engine: opened at the start, written at intervals, given to clients.

use std::time::Instant;

use super::Engine;
use crate::error::Error;
use crate::intake::Intake;
use crate::metrics::{MetricsFile, MetricsServer, MetricsTarget, text};
use crate::status::{StatusInput, document_of};

impl Engine {
    pub(super) fn open_metrics(&mut self) -> Result<(), Error> {
        for target in self.collector.options.metrics.clone() {
            match target {
                MetricsTarget::File(path) => self.metrics_file = Some(MetricsFile::new(path)),
                MetricsTarget::Http(address) => self.metrics_server = Some(MetricsServer::open(address)?),
            }
        }
        Ok(())
    }

    pub(super) fn on_metrics(&mut self) {
        let Some(server) = &self.metrics_server else { return };
        server.answer(|| text(&self.document()));
    }

    pub(super) fn write_metrics(&mut self, now: Instant) {
        let Some(mut file) = self.metrics_file.take() else { return };
        self.collector.messages.extend(file.write(now, &self.document()));
        self.metrics_file = Some(file);
    }

    pub(super) fn intakes(&self) -> impl Iterator<Item = &Intake> {
        self.sources.iter().flat_map(|(_, entry)| entry.source.intakes())
    }

    pub(super) fn status_input(&self) -> StatusInput<'_> {
        StatusInput {
            sink: &self.collector.sink,
            ended: self.collector.ended,
            connections: self.connections,
            overflow: self.collector.options.overflow,
            elapsed: self.started.elapsed(),
        }
    }

    fn document(&self) -> weir_model::log::LogDocument {
        document_of(self.collector.options.output.as_deref(), &self.status_input(), self.intakes())
    }
}
