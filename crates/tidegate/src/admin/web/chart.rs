//! Charts as SVG, drawn here. They carry no style of their own: classes and attributes only, so that they fit
//! any theme and the strict content policy.

use maud::{Markup, html};

/// What happened in a span of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bar {
    pub(super) at_ms: u64,
    pub(super) allowed: u64,
    pub(super) would_block: u64,
    pub(super) blocked: u64,
}

impl Bar {
    pub(super) fn total(&self) -> u64 {
        self.allowed + self.would_block + self.blocked
    }
}

/// The unit of the drawings; what is shown is stretched to the room there is.
const HEIGHT: u64 = 100;
const STEP: u64 = 10;

/// Stacked bars with three lines behind them. `text` says in words what is to be seen.
pub(super) fn bars(bars: &[Bar], class: &str, text: &str) -> Markup {
    let width = (bars.len() as u64).max(1) * STEP;
    html! {
        svg class=(class) viewBox={ "0 0 " (width) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(text) {
            @for y in [1, HEIGHT / 2, HEIGHT - 1] {
                line.grid x1="0" x2=(width) y1=(y) y2=(y) {}
            }
            (stacks(bars))
        }
    }
}

/// A small chart in a row of a table.
pub(super) fn sparkline(bars: &[Bar], text: &str) -> Markup {
    let width = (bars.len() as u64).max(1) * STEP;
    html! {
        svg.spark viewBox={ "0 0 " (width) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(text) {
            line.base x1="0" x2=(width) y1=(HEIGHT) y2=(HEIGHT) {}
            (stacks(bars))
        }
    }
}

/// The highest bar: what the top line of [`bars`] stands for.
pub(super) fn peak(bars: &[Bar]) -> u64 {
    bars.iter().map(Bar::total).max().unwrap_or(0)
}

fn stacks(bars: &[Bar]) -> Markup {
    let peak = peak(bars).max(1);
    // One unit at least, so that a single request among thousands is seen.
    let height = |count: u64| if count == 0 { 0 } else { (count * HEIGHT / peak).max(1) };
    html! {
        @for (index, bar) in bars.iter().enumerate() {
            @let x = index as u64 * STEP + 1;
            @let parts = [("allowed", bar.allowed), ("would", bar.would_block), ("blocked", bar.blocked)];
            @let heights = parts.map(|(_, count)| height(count));
            @for (part, (class, _)) in parts.iter().enumerate() {
                @if heights[part] > 0 {
                    @let below: u64 = heights[..=part].iter().sum();
                    rect class=(class) x=(x) width=(STEP - 2) y=(HEIGHT.saturating_sub(below)) height=(heights[part]) {}
                }
            }
        }
    }
}

/// What is used of a whole, with a part at the end that is kept for some.
pub(super) fn meter(used: u64, whole: u64, kept: u64, class: &str, text: &str) -> Markup {
    let part = |count: u64| {
        let part = u128::from(count) * 1000 / u128::from(whole.max(1));
        u64::try_from(part.min(1000)).unwrap_or(1000)
    };
    let (used, kept) = (part(used), part(kept));
    html! {
        svg.meter viewBox="0 0 1000 8" preserveAspectRatio="none" role="img" aria-label=(text) {
            rect.track width="1000" height="8" {}
            @if kept > 0 { rect.reserve x=(1000 - kept) width=(kept) height="8" {} }
            rect class={ "used " (class) } width=(used) height="8" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stack_up_to_the_top_and_small_ones_are_seen() {
        let bar = |allowed, would_block, blocked| Bar { at_ms: 0, allowed, would_block, blocked };
        let drawn = bars(&[bar(50, 25, 25), bar(10_000, 0, 1), bar(0, 0, 0)], "chart", "x").into_string();
        assert!(drawn.contains(r#"viewBox="0 0 30 100""#), "{drawn}");
        assert!(drawn.contains(r#"<rect class="blocked" x="11" width="8" y="0" height="1">"#), "{drawn}");
        assert_eq!(drawn.matches("<rect").count(), 5, "{drawn}");
        assert!(!drawn.contains("style"), "the content policy forbids it");
        assert!(sparkline(&[], "x").into_string().contains("0 0 10 100"));
    }
}
