// A plugin of OpenCode. ACP reports usage only at the end of a turn, so this reports each call of the model.
const PRICED = false
const say = (method, params) =>
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", method: `_spektacular/${method}`, params }) + "\n")

export const Spektacular = async () => {
  say("ready", {})
  return {
    event: async ({ event }) => {
      const { part, status } = event.properties ?? {}
      if (event.type === "message.part.updated" && part?.type === "step-finish")
        say("step", { id: part.id, tokens: part.tokens, cost: part.cost })
      if (event.type === "session.status" && status?.type === "retry")
        say("retry", { attempt: status.attempt, next: status.next })
    },
    "chat.params": async ({ model }) => {
      if (PRICED && !model?.cost?.input && !model?.cost?.output) throw new Error("_spektacular/unpriced")
    },
  }
}
