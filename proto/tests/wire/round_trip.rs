//! Nothing is lost between two of our own: domain, wire, bytes, wire, domain.

use std::fmt::Debug;

use ganger_proto::{Malformed, v1};
use ganger_shared::link::WorkerSays;
use proptest::prelude::*;
use prost::Message;

use crate::samples::{self, Gen};
use crate::views;

/// The value after it went over the wire as bytes.
fn over_the_wire<W, T>(value: T) -> Result<T, Malformed>
where
    W: Message + Default + From<T>,
    T: TryFrom<W, Error = Malformed>,
{
    W::decode(W::from(value).encode_to_vec().as_slice()).unwrap().try_into()
}

fn survives<W, T>(seed: u64, sample: fn(&mut Gen) -> T) -> Result<(), TestCaseError>
where
    W: Message + Default + From<T>,
    T: TryFrom<W, Error = Malformed> + Clone + PartialEq + Debug,
{
    let value = sample(&mut Gen(seed));
    prop_assert_eq!(over_the_wire::<W, T>(value.clone()), Ok(value));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_worker_says_arrives_as_said(seed: u64) {
        survives::<v1::WorkerMessage, _>(seed, samples::worker_says)?;
    }

    #[test]
    fn what_a_coordinator_says_arrives_as_said(seed: u64) {
        survives::<v1::CoordinatorMessage, _>(seed, samples::coordinator_says)?;
    }

    #[test]
    fn views_arrive_as_shown(seed: u64) {
        survives::<v1::RunView, _>(seed, views::run)?;
        survives::<v1::RunRow, _>(seed, views::row)?;
        survives::<v1::UnitView, _>(seed, views::unit)?;
        survives::<v1::AttemptView, _>(seed, views::attempt)?;
        survives::<v1::CheckView, _>(seed, views::check)?;
        survives::<v1::WorkerView, _>(seed, views::worker)?;
        survives::<v1::Explanation, _>(seed, views::explanation)?;
        survives::<v1::RunSnapshot, _>(seed, views::snapshot)?;
    }

    #[test]
    fn verdicts_problems_events_and_sources_arrive_as_sent(seed: u64) {
        survives::<v1::Verdict, _>(seed, views::verdict)?;
        survives::<v1::Problem, _>(seed, views::problem)?;
        survives::<v1::RunEvent, _>(seed, views::watched)?;
        survives::<v1::SubmittedRepository, _>(seed, views::source)?;
    }

    /// Bytes of a hostile or broken peer are refused or understood; the door never falls.
    #[test]
    fn no_bytes_make_the_door_panic(seed: u64, at: usize, byte: u8, cut: bool) {
        let mut bytes =
            v1::WorkerMessage::from(samples::worker_says(&mut Gen(seed))).encode_to_vec();
        if !bytes.is_empty() {
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.truncate(if cut { at } else { bytes.len() });
        }
        if let Ok(message) = v1::WorkerMessage::decode(bytes.as_slice())
            && let Ok(said) = WorkerSays::try_from(message)
        {
            prop_assert_eq!(over_the_wire::<v1::WorkerMessage, _>(said.clone()), Ok(said));
        }
    }

    /// N and N - 1 work together: a field this build does not know changes nothing.
    #[test]
    fn an_unknown_field_of_a_newer_peer_is_passed_over(seed: u64) {
        let says = samples::worker_says(&mut Gen(seed));
        let mut bytes = v1::WorkerMessage::from(says.clone()).encode_to_vec();
        // Field 1999, a varint.
        bytes.extend([0xf8, 0x7c, 0x01]);
        let message = v1::WorkerMessage::decode(bytes.as_slice()).unwrap();
        prop_assert_eq!(message.try_into(), Ok(says));
    }
}
