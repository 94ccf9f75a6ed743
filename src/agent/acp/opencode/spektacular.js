// A plugin of OpenCode. ACP reports usage only at the end of a turn, and of an error only the text, so this reports each
// call of the model, each retry and each error of the provider.
const PRICED = false
const say = (method, params) =>
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", method: `_spektacular/${method}`, params }) + "\n")

const reason = ({ responseBody }) => {
  try {
    const { code, type } = JSON.parse(responseBody).error
    return String(code ?? type)
  } catch {}
}

// The end of the provider's limit, in milliseconds since 1970.
const until = ({ responseHeaders }) => {
  const wait = responseHeaders?.["retry-after"]
  return (Number(wait) > 0 ? Date.now() + wait * 1000 : Date.parse(wait)) || undefined
}

export const Spektacular = async () => {
  say("ready", {})
  return {
    event: async ({ event }) => {
      const { part, status, error, sessionID: session } = event.properties ?? {}
      if (event.type === "message.part.updated" && part?.type === "step-finish")
        say("step", { id: part.id, tokens: part.tokens, cost: part.cost, calls: part.reason === "tool-calls" })
      if (event.type === "session.error" && error?.data)
        say("error", {
          session,
          name: error.name,
          text: error.data.message,
          status: error.data.statusCode,
          reason: reason(error.data),
          until: until(error.data),
        })
      if (event.type === "session.status" && status?.type === "retry")
        say("retry", { attempt: status.attempt, next: status.next })
    },
    "chat.params": async ({ model }) => {
      if (PRICED && !model?.cost?.input && !model?.cost?.output) throw new Error("_spektacular/unpriced")
    },
  }
}
