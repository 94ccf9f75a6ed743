// An extension of pi, which asks for nothing by itself: it asks before each call of a tool, and brings the run's servers.
import { existsSync } from "node:fs"
import { resolve } from "node:path"

const RUN = {}
// The longest time of a call of a server's tool. The run has limits of its own.
const CALL_S = 2_000_000
const ACTS = ["bash", "powershell", "edit", "write", "codemode"]
const may = (tool) => RUN.own.includes(tool) || ((RUN.allowed?.includes(tool) ?? true) && !RUN.disallowed.includes(tool))

export default (pi) => {
  for (const [name, server] of Object.entries(RUN.servers)) {
    // pi takes `$` for a variable, and `!` for a command.
    const env = Object.entries(server.env ?? {}).map(([key, value]) => [key, value.replaceAll("$", "$$$$").replace(/^!/, "$$!")])
    pi.registerMcpServer(name, { ...server, env: Object.fromEntries(env), exposure: "direct", timeout: CALL_S })
  }

  pi.on("session_start", async (_, { ui }) => {
    const version = await import("@earendil-works/pi-coding-agent").then((own) => own.VERSION, () => undefined)
    ui.setStatus(RUN.name, version ?? "")
  })

  pi.on("before_agent_start", ({ systemPrompt }) => {
    const looks = RUN.reads ? [...pi.getActiveTools(), "grep", "find", "ls"].filter((tool) => !ACTS.includes(tool)) : pi.getActiveTools()
    pi.setActiveTools([...new Set(looks)].filter(may))
    if (RUN.prompt) return { systemPrompt: RUN.replaces ? RUN.prompt : `${systemPrompt}\n\n${RUN.prompt}` }
  })

  pi.on("tool_call", async ({ toolCallId: call, toolName: tool, input }, { ui, cwd }) => {
    if (!may(tool)) return { block: true, reason: "This run excludes the tool." }
    const creates = tool === "write" && !existsSync(resolve(cwd, `${input.path}`))
    const reply = JSON.parse((await ui.input(RUN.name, JSON.stringify({ call, tool, input, creates }))) ?? "{}")
    if (!reply.allowed) return { block: true, reason: reply.reason ?? "The user denied this." }
    if (!reply.input) return
    for (const name of Object.keys(input)) delete input[name]
    Object.assign(input, reply.input)
  })
}
