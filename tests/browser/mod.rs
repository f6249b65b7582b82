//! Controls a headless Chromium through its remote-debugging pipe: JSON messages, each ended by a NUL byte.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// Longest wait for a message. A browser on a busy machine takes seconds to start.
const LIMIT: Duration = Duration::from_secs(120);

/// A running browser with one page. Killed when dropped.
pub struct Browser {
    child: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    session: Option<String>,
    number: u64,
    /// Events that came while an answer was expected.
    events: Vec<Value>,
}

/// Returns the name of the installed Chromium, if there is one.
pub fn installed() -> Option<&'static str> {
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| crate::common::has(name))
}

impl Browser {
    /// Starts a browser whose profile is in a directory, with an empty page.
    pub fn start(program: &str, profile: &Path) -> Self {
        // The browser reads commands from descriptor 3 and writes to descriptor 4.
        let script = "exec 3<&0 4>&1 </dev/null >/dev/null 2>&1; exec \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh", program, "--headless", "--remote-debugging-pipe", "--no-sandbox"]);
        command.args(["--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-dev-shm-usage"]);
        command.arg(format!("--user-data-dir={}", profile.display()));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a browser starts");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, messages) = channel();
        thread::spawn(move || {
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|got| got > 0) {
                message.pop();
                let value = serde_json::from_slice(&message).expect("the browser writes JSON");
                if sender.send(value).is_err() {
                    break;
                }
                message.clear();
            }
        });
        let commands = child.stdin.take().expect("a pipe");
        let mut browser = Self { child, commands, messages, session: None, number: 0, events: Vec::new() };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach)["sessionId"].as_str().map(Into::into);
        browser.session = session;
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Calls a method of the browser and returns its result.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.number += 1;
        let mut message = json!({"id": self.number, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.commands.write_all(format!("{message}\0").as_bytes()).expect("the browser runs");
        loop {
            let answer = self.messages.recv_timeout(LIMIT).expect("the browser answers");
            if answer["id"] == json!(self.number) {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    /// Shows a file in a window of this width, as high as the page with its tables open, and returns the errors that the browser reported and the
    /// addresses that the page asked for.
    pub fn open(&mut self, page: &Path, width: u32, dark: bool) -> Vec<String> {
        self.events.clear();
        self.resize(width, 1000);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features}));
        let address = format!("file://{}", page.display());
        self.call("Page.navigate", json!({"url": address}));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.messages.recv_timeout(LIMIT).expect("the page loads");
            self.events.push(event);
        }
        // Tables are closed and frames hidden at first; what is in them is checked too.
        self.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))");
        self.evaluate("document.querySelectorAll('.frames .all').forEach((button) => button.click())");
        let height = self.evaluate("document.documentElement.scrollHeight").as_u64().expect("a height");
        self.resize(width, height.min(30_000) as u32);
        self.events.iter().filter_map(|event| problem(event, &address)).collect()
    }

    fn resize(&mut self, width: u32, height: u32) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// Evaluates an expression in the page and returns its value.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        self.evaluated(expression, false)
    }

    /// Evaluates an expression that is a promise, and returns the value that it is resolved to.
    #[allow(dead_code)] // each test that has this module uses a part of it
    pub fn evaluate_promise(&mut self, expression: &str) -> Value {
        self.evaluated(expression, true)
    }

    fn evaluated(&mut self, expression: &str, awaits: bool) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": awaits});
        let result = self.call("Runtime.evaluate", parameters);
        assert!(result["exceptionDetails"].is_null(), "{}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }
}

/// Returns what an event says of an error, or of a request for something other than the page.
fn problem(event: &Value, page: &str) -> Option<String> {
    let parameters = &event["params"];
    match event["method"].as_str()? {
        "Runtime.exceptionThrown" => Some(format!("exception: {}", parameters["exceptionDetails"])),
        "Runtime.consoleAPICalled" if parameters["type"] == "error" => Some(format!("console: {parameters}")),
        "Log.entryAdded" if parameters["entry"]["level"] == "error" => {
            Some(format!("error: {}", parameters["entry"]["text"]))
        }
        "Network.requestWillBeSent" => {
            let url = parameters["request"]["url"].as_str()?;
            (url != page && !url.starts_with("data:")).then(|| format!("request: {url}"))
        }
        _ => None,
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
