//! What must hold on every page: it fits a phone, can be used by keyboard, and asks nobody else.

use serde_json::{Value, json};

use crate::{
    browser::{Browser, DESK, Look, PHONE, visit},
    support::server::Setup,
};

const PAGES: [&str; 4] = ["/", "/apps/demo", "/guard", "/audit"];

#[tokio::test]
async fn every_page_fits_in_both_themes_and_asks_nobody_else() {
    let server = tokio::task::spawn_blocking(|| Setup::new().unset("guard.secrets").start());
    let server = server.await.expect("the server starts");
    visit(server.apps, [127, 0, 0, 66], "a-scraper-with-quite-a-long-name/1.0", 40);
    let browser = Browser::open(&server).await;
    browser.sign_in(&server).await;
    for page in PAGES {
        for look in [DESK, PHONE, Look { dark: true, ..DESK }, Look { dark: false, ..PHONE }] {
            browser.look(look).await;
            browser.go(page).await;
            browser.find("main > *").await;
            let fits = "return [document.documentElement.scrollWidth, innerWidth];";
            let widths = browser.client.execute(fits, vec![]).await.expect("a script");
            assert!(widths[0].as_u64() <= widths[1].as_u64(), "{page} at {look:?}: {widths}");
            let contrast = browser.client.execute(CONTRAST, vec![]).await.expect("a script");
            assert_eq!(contrast, json!([]), "{page} at {look:?}");
        }
    }
    every_control_has_a_name(&browser).await;
    by_keyboard(&browser).await;
    browser.assert_clean().await;
    browser.close().await;
}

/// Whoever hears a page is told what each control is.
async fn every_control_has_a_name(browser: &Browser) {
    for page in PAGES {
        browser.go(page).await;
        let script =
            "return [...document.querySelectorAll('input:not([type=hidden]), textarea, select, button, a')]
            .filter((each) => !(each.labels?.length || each.textContent.trim() || each.ariaLabel))
            .map((each) => each.outerHTML);";
        assert_eq!(browser.client.execute(script, vec![]).await.expect("a script"), json!([]), "{page}");
    }
}

/// Tab reaches what the mouse does, and shows where it is.
async fn by_keyboard(browser: &Browser) {
    browser.go("/apps/demo").await;
    browser.find("#enforce").await;
    let mut reached = Vec::new();
    for _ in 0..40 {
        let tab = json!({"type": "keyDown", "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9});
        browser.devtools("Input.dispatchKeyEvent", tab).await;
        let script = "const at = document.activeElement;
            return [at.id || at.textContent.trim(), getComputedStyle(at).outlineStyle];";
        let at = browser.client.execute(script, vec![]).await.expect("a script");
        if at[0] == "enforce" || reached.len() > 40 {
            reached.push(at);
            break;
        }
        reached.push(at);
    }
    let names: Vec<&str> = reached.iter().filter_map(|at| at[0].as_str()).collect();
    for name in ["To the content", "Overview", "Guard", "rps", "burst", "deny_cidrs", "enforce"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    let hidden: Vec<&Value> = reached.iter().filter(|at| at[1] == "none" && at[0] != "").collect();
    assert!(hidden.is_empty(), "the focus is seen: {hidden:?}");
}

/// Text that is not told from its ground: under 4.5 to 1, by the formula of WCAG 2.
const CONTRAST: &str = r"
    const light = ([r, g, b]) => {
        const part = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
        return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
    };
    const numbers = (color) => color.match(/[\d.]+/g).map(Number);
    const ground = (each) => {
        for (; each; each = each.parentElement) {
            const color = numbers(getComputedStyle(each).backgroundColor);
            if (color.length < 4 || color[3] > 0) return color;
        }
        return [255, 255, 255];
    };
    const faint = [];
    for (const each of document.querySelectorAll('main *, header *')) {
        const own = [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
        if (!own || each.closest('[disabled], [aria-busy=true], .skip') || !each.offsetParent) continue;
        const [a, b] = [light(numbers(getComputedStyle(each).color)), light(ground(each))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) faint.push(`${each.textContent.trim().slice(0, 30)}: ${ratio.toFixed(2)}`);
    }
    return faint;
";
