// The runtime of acpx as OpenClaw's ACP backend, with the options of the plugin @openclaw/acpx.
// Environment: ACPX, the installed package. OpenClaw loads a plugin by require, so nothing here may await at the top.
import { createRequire } from "node:module";
import { join } from "node:path";
import { registerAcpRuntimeBackend, tryDispatchAcpReplyHook } from "openclaw/plugin-sdk/acp-runtime-backend";

const { ACPX, HOME } = process.env;
const { createAcpRuntime, createFileSessionStore } = createRequire(import.meta.url)(join(ACPX, "dist/runtime.js"));

export default {
  id: "acpx",
  name: "acpx",
  description: "Stands in for the plugin @openclaw/acpx.",
  register(api) {
    const { agents } = api.pluginConfig;
    const runtime = createAcpRuntime({
      cwd: HOME,
      sessionStore: createFileSessionStore({ stateDir: join(HOME, "acpx") }),
      agentRegistry: {
        resolve: (name) => [agents[name].command, ...agents[name].args],
        list: () => Object.keys(agents),
      },
      permissionMode: "approve-reads",
      nonInteractivePermissions: "deny",
      elicitationModes: ["form", "url"],
    });
    registerAcpRuntimeBackend({ id: "acpx", runtime });
    // Without it, OpenClaw's own model answers in a session of ACP.
    api.on("reply_dispatch", tryDispatchAcpReplyHook);
  },
};
