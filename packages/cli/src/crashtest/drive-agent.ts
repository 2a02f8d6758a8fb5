/**
 * The program that `skein crashtest <folder>` kills: it opens the definitions of a folder with a store in the current
 * folder, sends an agent one message, approves the calls that wait for that, and ends when the thread rests. Started
 * again, it continues.
 */
import { join, resolve } from 'node:path'
import {
  createRuntime,
  discover,
  type DiscoveredRegistry,
  type SessionResult,
  type ToolDefinition,
} from '@skein/runtime'
import { CRASHTEST, type Crashtest } from './preload/protocol.ts'

/** The exit code if something waits for a person. */
const WAITING = 3

// Timers of the runtime do not keep a process alive.
setInterval(() => undefined, 2 ** 30)
process.exit(await drive())

async function drive(): Promise<number> {
  const [folder = '', agent = '', message = ''] = process.argv.slice(2)
  const registry = await discover(resolve(folder))
  const steps = (globalThis as { [CRASHTEST]?: Crashtest })[CRASHTEST]
  if (steps) watchTools(registry, steps)
  const runtime = await createRuntime({
    registry,
    folder: join('.skein', 'crashtest'),
    keepsSecretKeyWithData: true,
  })
  await runtime.start()
  // The thread and its message are created together, so there is one after a crash, or none.
  const [existing] = await runtime.threads.list()
  const { id } = existing ?? (await runtime.threads.create({ agent, message }))
  let result: SessionResult = await runtime.threads.settled(id)
  for (;;) {
    const approvals = result.waiting.filter(({ kind }) => kind === 'approval')
    if (approvals.length === 0) break
    for (const { threadId, interruptId } of approvals)
      await runtime.inbox.approve({ threadId, interruptId, by: 'crashtest' })
    result = await runtime.threads.settled(id)
  }
  process.stdout.write(`${result.outcome}: ${result.text || result.reason}\n`)
  await runtime.stop()
  return result.outcome === 'waiting' ? WAITING : result.outcome === 'completed' ? 0 : 1
}

type ResolvedPrompt = ReturnType<DiscoveredRegistry['agent']>['a']['prompt']

/** Makes each call of a tool a step, and each call of a writing tool that returns an effect. */
function watchTools(registry: DiscoveredRegistry, steps: Crashtest): void {
  const seen = new Set<ResolvedPrompt>()
  const watchPrompt = (prompt: ResolvedPrompt): void => {
    if (seen.has(prompt)) return
    seen.add(prompt)
    for (const entry of prompt.tools) {
      if (entry.kind === 'prompt') watchPrompt(entry.prompt)
      // The registry was made for this process alone, so its entries may be replaced.
      if (entry.kind === 'tool') Object.assign(entry, { tool: watched(entry.tool, steps) })
    }
  }
  for (const { a, b } of registry.agents.values())
    for (const side of [a, b]) if (side) watchPrompt(side.prompt)
}

function watched(tool: ToolDefinition, steps: Crashtest): ToolDefinition {
  const { run, name, risk } = tool
  if (!run) return tool
  return {
    ...tool,
    run: async (args, context) => {
      const number = steps.step('tool', `tool ${name}`)
      const result = await run(args, context)
      if (risk !== 'read_only') steps.effect(`tool ${name} ${JSON.stringify(args)}`)
      steps.done(number)
      return result
    },
  }
}
