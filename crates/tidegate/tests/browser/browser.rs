//! A browser of its own for each test: chromedriver on a port that the system chose, and a fresh profile.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    time::Duration,
};

use fantoccini::{Client, ClientBuilder, Locator, elements::Element, wd::WebDriverCompatibleCommand};
use http::Method;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{DEADLINE, server::Server};

/// A window and a theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) width: u32,
    pub(crate) dark: bool,
}

pub(crate) const DESK: Look = Look { width: 1280, dark: false };
pub(crate) const PHONE: Look = Look { width: 375, dark: true };

pub(crate) struct Browser {
    pub(crate) client: Client,
    origin: String,
    driver: Child,
    _profile: TempDir,
}

impl Browser {
    /// A browser for the dashboard of this server.
    pub(crate) async fn open(server: &Server) -> Self {
        let (driver, port) = start_driver();
        let profile = tempfile::tempdir().expect("the system's temporary folder takes a folder");
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
        ];
        let profile_argument = format!("--user-data-dir={}", profile.path().display());
        let arguments: Vec<&str> = arguments.into_iter().chain([profile_argument.as_str()]).collect();
        let capabilities = json!({
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        });
        let capabilities = capabilities.as_object().expect("written as one just above").clone();
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .expect("chromedriver starts a browser");
        Self { client, origin: format!("http://{}", server.admin), driver, _profile: profile }
    }

    pub(crate) async fn go(&self, path: &str) {
        self.client.goto(&format!("{}{path}", self.origin)).await.expect("the page loads");
    }

    /// Signs in with the token of the first start.
    pub(crate) async fn sign_in(&self, server: &Server) {
        self.go("/").await;
        self.find("#token").await.send_keys(&server.made_secret("admin_token")).await.expect("a field");
        self.press("form button").await;
        self.wait_for_text("h1", "Overview").await;
    }

    pub(crate) async fn find(&self, css: &str) -> Element {
        let found = self.client.wait().at_most(DEADLINE).for_element(Locator::Css(css)).await;
        found.unwrap_or_else(|error| panic!("{css}: {error}"))
    }

    pub(crate) async fn has(&self, css: &str) -> bool {
        self.client.find(Locator::Css(css)).await.is_ok()
    }

    pub(crate) async fn press(&self, css: &str) {
        self.find(css).await.click().await.unwrap_or_else(|error| panic!("{css}: {error}"));
    }

    /// Waits until what `css` finds has this text in it.
    pub(crate) async fn wait_for_text(&self, css: &str, text: &str) {
        let script =
            "const found = document.querySelector(arguments[0]); return found ? found.innerText : null;";
        self.wait_until(&format!("{text:?} in {css}"), script, vec![json!(css)], |value| {
            value.as_str().is_some_and(|found| found.contains(text))
        })
        .await;
    }

    /// Runs the script until what it returns will do.
    pub(crate) async fn wait_until(
        &self,
        what: &str,
        script: &str,
        arguments: Vec<Value>,
        will_do: impl Fn(&Value) -> bool,
    ) -> Value {
        let started = crate::support::now();
        loop {
            // A page that is just being replaced has nothing to say.
            let value = self.client.execute(script, arguments.clone()).await.unwrap_or(Value::Null);
            if will_do(&value) {
                return value;
            }
            assert!(started.elapsed() < DEADLINE, "{what}: it is {value}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn look(&self, look: Look) {
        let theme = if look.dark { "dark" } else { "light" };
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": theme}]});
        self.devtools("Emulation.setEmulatedMedia", media).await;
        let window =
            json!({"width": look.width, "height": 800, "deviceScaleFactor": 1, "mobile": look.width < 500});
        self.devtools("Emulation.setDeviceMetricsOverride", window).await;
    }

    pub(crate) async fn devtools(&self, command: &str, parameters: Value) -> Value {
        let body = json!({"cmd": command, "params": parameters});
        self.issue("goog/cdp/execute", body).await
    }

    /// What the browser has complained about since it was asked last.
    pub(crate) async fn complaints(&self) -> Vec<Value> {
        let entries = self.issue("se/log", json!({"type": "browser"})).await;
        entries.as_array().cloned().unwrap_or_default()
    }

    /// Every URL that was asked for since it was asked last.
    pub(crate) async fn requests(&self) -> Vec<String> {
        let entries = self.issue("se/log", json!({"type": "performance"})).await;
        let entries = entries.as_array().cloned().unwrap_or_default();
        let messages =
            entries.iter().filter_map(|entry| serde_json::from_str(entry["message"].as_str()?).ok());
        messages
            .filter(|message: &Value| message["message"]["method"] == "Network.requestWillBeSent")
            .filter_map(|message| Some(message["message"]["params"]["request"]["url"].as_str()?.to_owned()))
            .collect()
    }

    /// # Panics
    /// The browser has complained, or asked anybody but this server.
    pub(crate) async fn assert_clean(&self) {
        assert_eq!(self.complaints().await, [] as [Value; 0]);
        let requests = self.requests().await;
        let foreign: Vec<&String> = requests
            .iter()
            .filter(|url| {
                !url.starts_with(&self.origin) && !url.starts_with("data:") && !url.starts_with("chrome")
            })
            .collect();
        assert!(!requests.is_empty() && foreign.is_empty(), "{foreign:?}");
    }

    async fn issue(&self, path: &'static str, body: Value) -> Value {
        let answered = self.client.issue_cmd(Extension { path, body }).await;
        answered.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) async fn close(self) {
        // A browser that is gone already is as good.
        let _ = self.client.clone().close().await;
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// A command that only chromedriver has.
#[derive(Debug)]
struct Extension {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Extension {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _url: &url::Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.body.to_string()))
    }
}

/// Starts chromedriver on a port that the system chooses; it says which.
fn start_driver() -> (Child, u16) {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("chromedriver and chromium are installed (on Debian: chromium chromium-driver)");
    let mut lines = BufReader::new(driver.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let port = lines.find_map(|line| {
        let (_, port) = line.split_once("started successfully on port ")?;
        port.trim_end_matches('.').parse().ok()
    });
    // It must be able to go on writing.
    std::thread::spawn(move || lines.for_each(drop));
    (driver, port.expect("chromedriver says where it listens"))
}

/// Requests to the app from an address of this machine, one after the other; answers their statuses.
pub(crate) fn visit(app: SocketAddr, from: [u8; 4], agent: &str, count: usize) -> Vec<u16> {
    let mut wire = crate::support::wire::Wire::tcp_from(from.into(), app).expect("the app is there");
    let request = format!("GET /echo HTTP/1.1\r\nHost: {app}\r\nUser-Agent: {agent}\r\n\r\n");
    (0..count).map(|_| wire.exchange(request.as_bytes()).expect("an answer").status).collect()
}
