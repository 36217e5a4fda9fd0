use std::collections::VecDeque;

use bytes::Bytes;

use super::{Event, EventId, EventStore, Room};
use crate::budget::{Charge, Owner};

/// The newest events of a session, as many as there is room for.
pub(crate) struct MemoryEvents {
    events: VecDeque<(EventId, Bytes)>,
    bytes: usize,
    room: Room,
    charge: Charge,
}

impl MemoryEvents {
    pub(crate) fn new(room: Room, owner: Owner) -> Self {
        Self { events: VecDeque::new(), bytes: 0, room, charge: Charge::new(owner) }
    }

    /// Drops the oldest. `false`: there is none.
    fn drop_oldest(&mut self) -> bool {
        let oldest = self.events.pop_front();
        oldest.inspect(|(_, text)| self.bytes -= text.len()).is_some()
    }
}

impl EventStore for MemoryEvents {
    fn keep(&mut self, id: EventId, text: &Bytes) {
        if text.len() > self.room.bytes || self.room.events == 0 {
            return;
        }
        while self.events.len() >= self.room.events || self.bytes + text.len() > self.room.bytes {
            if !self.drop_oldest() {
                break;
            }
        }
        while !self.charge.fit(self.bytes + text.len()) {
            if !self.drop_oldest() {
                return;
            }
        }
        self.bytes += text.len();
        self.events.push_back((id, text.clone()));
    }

    fn after(&self, id: EventId) -> Vec<Event> {
        let follows = |(other, _): &&(EventId, Bytes)| other.stream == id.stream && other.number > id.number;
        self.events.iter().filter(follows).map(|(id, text)| Event { id: Some(*id), text: text.clone() }).collect()
    }

    fn take_back(&mut self, id: EventId) {
        if let Some(at) = self.events.iter().rposition(|(other, _)| *other == id)
            && let Some((_, text)) = self.events.remove(at)
        {
            self.bytes -= text.len();
            self.charge.fit(self.bytes);
        }
    }

    fn forget(&mut self) -> usize {
        let held = self.charge.held();
        self.events = VecDeque::new();
        self.bytes = 0;
        self.charge.fit(0);
        held
    }
}

#[cfg(test)]
mod tests {
    use super::super::Stream;
    use super::*;

    fn id(stream: u64, number: u64) -> EventId {
        EventId { stream: Stream::Request(stream), number, place: 0 }
    }

    fn after(store: &MemoryEvents, id: EventId) -> Vec<u64> {
        store.after(id).into_iter().filter_map(|event| event.id).map(|id| id.number).collect()
    }

    #[test]
    fn the_oldest_make_room_by_number_and_by_size() {
        let mut store = MemoryEvents::new(Room { events: 3, bytes: 100 }, Owner::UNKNOWN);
        for number in 1..=5 {
            store.keep(id(1, number), &Bytes::from_static(b"0123456789"));
        }
        assert_eq!(after(&store, id(1, 0)), [3, 4, 5]);
        store.keep(id(1, 6), &Bytes::from(vec![b'x'; 85]));
        assert_eq!((after(&store, id(1, 0)), store.bytes), (vec![5, 6], 95));
        store.keep(id(1, 7), &Bytes::from(vec![b'x'; 101]));
        assert_eq!(after(&store, id(1, 0)), [5, 6], "what has no room at all costs no other its place");
        store.take_back(id(1, 6));
        assert_eq!((after(&store, id(1, 0)), store.bytes), (vec![5], 10));
    }

    #[test]
    fn only_what_followed_on_the_same_stream_comes_back() {
        let mut store = MemoryEvents::new(Room { events: 9, bytes: 100 }, Owner::UNKNOWN);
        let standalone = |number| EventId { stream: Stream::Standalone(1), number, place: 0 };
        for id in [id(1, 3), id(2, 4), standalone(5), id(1, 6)] {
            store.keep(id, &Bytes::from_static(b"{}"));
        }
        assert_eq!(
            (after(&store, id(1, 1)), after(&store, id(1, 3)), after(&store, id(2, 4))),
            (vec![3, 6], vec![6], vec![])
        );
        assert_eq!(after(&store, standalone(1)), [5]);
    }

    #[test]
    fn ids_are_read_as_they_are_written() {
        let placed = EventId { stream: Stream::Standalone(u64::MAX), number: 0, place: u64::MAX };
        for id in [id(1, 2), EventId { place: 0, ..placed }, placed] {
            assert_eq!(EventId::parse(&id.to_string()), Some(id));
        }
        for bad in [
            "",
            "r",
            "r1",
            "r1-",
            "r-1",
            "x1-1",
            "r1-1-1-1",
            "r1-1-0",
            "r1-1-",
            "r+1-1",
            "r1--1",
            "é1-1",
            "r99999999999999999999-1",
        ] {
            assert_eq!(EventId::parse(bad), None, "{bad}");
        }
    }
}
