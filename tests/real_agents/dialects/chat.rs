//! The chat completions API of OpenAI, which many providers offer, for OpenCode.

use serde_json::{Value, json};

use super::{Answer, Asked, Dialect, Step, list, openai_error, options, plain, unnamed};
use crate::scenario::{Call, Refusal};

pub(crate) struct Chat;

impl Dialect for Chat {
    fn asked(&self, path: &str, body: &Value) -> Asked {
        let stream = body["stream"] == true;
        match path {
            // Requests for titles name no tools.
            "/v1/chat/completions" if !list(&body["tools"]).is_empty() => Asked::Conversation { stream },
            "/v1/chat/completions" => Asked::Aside { stream, answer: "A title".into() },
            _ => Asked::Unknown,
        }
    }

    fn steps(&self, answer: &Answer<'_>) -> Vec<Step> {
        let reply = &answer.reply;
        let mut steps = vec![Step::Event(delta(answer, &json!({"role": "assistant", "content": ""})))];
        answer.pieces(&mut steps, &reply.think, |piece| delta(answer, &json!({"reasoning_content": piece})));
        answer.pieces(&mut steps, &reply.say, |piece| delta(answer, &json!({"content": piece})));
        answer.after_text(&mut steps);
        for (index, call) in calls(answer).into_iter().enumerate() {
            let mut call = call;
            call["index"] = json!(index);
            steps.push(Step::Event(delta(answer, &json!({"tool_calls": [call]}))));
        }
        let choice = json!({"index": 0, "delta": {}, "finish_reason": finish_reason(answer)});
        let mut last = completion(answer, "chat.completion.chunk", &choice);
        last["usage"] = usage(answer);
        steps.push(Step::Event(unnamed(&last)));
        steps.push(Step::Event("data: [DONE]\n\n".into()));
        steps
    }

    fn whole(&self, answer: &Answer<'_>) -> Value {
        let message = json!({"role": "assistant", "content": answer.reply.say.concat(), "tool_calls": calls(answer)});
        let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason(answer)});
        let mut whole = completion(answer, "chat.completion", &choice);
        whole["usage"] = usage(answer);
        whole
    }

    fn error(&self, refusal: &Refusal) -> Value {
        openai_error(refusal)
    }

    fn texts(&self, body: &Value) -> Vec<String> {
        list(&body["messages"]).iter().map(|message| plain(&message["content"])).collect()
    }

    fn tool_results(&self, body: &Value) -> Vec<String> {
        let messages = list(&body["messages"]).iter().filter(|message| message["role"] == "tool");
        messages.map(|message| plain(&message["content"])).collect()
    }
}

fn calls(answer: &Answer<'_>) -> Vec<Value> {
    let one = |(id, call): (String, &Call)| {
        let (name, input) = tool(call, answer);
        json!({"id": id, "type": "function", "function": {"name": name, "arguments": input.to_string()}})
    };
    answer.calls().map(one).collect()
}

fn tool<'a>(call: &'a Call, answer: &Answer<'_>) -> (&'a str, Value) {
    match call {
        Call::Shell(command) | Call::Try(command) => ("bash", json!({"command": command, "description": "Run it"})),
        Call::Read(path) => ("read", json!({"filePath": answer.cwd.join(path)})),
        Call::Search(word) => ("grep", json!({"pattern": word})),
        Call::Write { path, content } => ("write", json!({"filePath": answer.cwd.join(path), "content": content})),
        Call::Edit { path, old, new } => {
            ("edit", json!({"filePath": answer.cwd.join(path), "oldString": old, "newString": new}))
        }
        Call::Ask(questions) => {
            let one = questions.iter().map(
                |q| json!({"question": q.question, "header": q.header, "multiple": q.multiple, "options": options(q)}),
            );
            ("question", json!({"questions": one.collect::<Vec<_>>()}))
        }
        Call::Tool { name, input } => (name, input.clone()),
        Call::Offered(_) | Call::Result(_) | Call::Badge(_) => unreachable!("it has its name by now"),
    }
}

fn finish_reason(answer: &Answer<'_>) -> &'static str {
    if answer.reply.calls.is_empty() { "stop" } else { "tool_calls" }
}

fn usage(answer: &Answer<'_>) -> Value {
    let usage = &answer.reply.usage;
    let input = usage.input + usage.cached;
    json!({"prompt_tokens": input, "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens": usage.output, "total_tokens": input + usage.output})
}

fn completion(answer: &Answer<'_>, object: &str, choice: &Value) -> Value {
    json!({"id": format!("chatcmpl_{}", answer.number), "object": object, "created": 0, "model": answer.model(),
        "choices": [choice]})
}

fn delta(answer: &Answer<'_>, delta: &Value) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
    unnamed(&completion(answer, "chat.completion.chunk", &choice))
}
