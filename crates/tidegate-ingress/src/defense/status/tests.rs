use tidegate_core::policy::Policy;

use super::*;

fn policy(mode: &str) -> Rules {
    Rules::Policy(Box::new(Policy::parse(format!(r#"{{"mode":"{mode}"}}"#).as_bytes()).unwrap()))
}

#[test]
fn the_first_that_applies_is_told() {
    let well = Surroundings { store_fault: None, routed: true, hides_clients: false, spreading: false };
    let hidden = Surroundings { hides_clients: true, ..well };
    let unrouted = Surroundings { routed: false, ..hidden };
    let unread = Surroundings { store_fault: Some("the disk is away"), ..unrouted };
    let spreading = Surroundings { spreading: true, ..hidden };
    let table = [
        (policy("enforce"), well, "Enforcing"),
        (policy("log_only"), well, "LogOnly"),
        (policy("off"), well, "Off"),
        (policy("enforce"), hidden, "ClientIPHidden"),
        (policy("log_only"), hidden, "ClientIPHidden"),
        (policy("off"), hidden, "Off"),
        (policy("enforce"), spreading, "Pending"),
        (policy("enforce"), unrouted, "NoRoutes"),
        (policy("off"), unrouted, "NoRoutes"),
        (Rules::Unknown, unrouted, "Pending"),
        (Rules::Unknown, unread, "Pending"),
        (Rules::Invalid("it is damaged".to_owned()), unrouted, "InvalidPolicy"),
    ];
    for (policy, surroundings, condition) in table {
        let in_force = InForce { version: 1, saved_at_ms: 0, policy };
        let status = status(&in_force, surroundings);
        assert_eq!(serde_json::to_value(status.condition).unwrap(), condition, "{surroundings:?}");
        assert_eq!(status.condition.as_str(), condition);
        assert!(status.message.ends_with('.'), "{}", status.message);
        let told = surroundings.store_fault.is_none_or(|fault| status.message.contains(fault));
        assert!(told, "{}", status.message);
    }
}
