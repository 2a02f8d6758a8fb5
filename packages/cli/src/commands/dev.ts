import { relative } from 'node:path'
import type { DiscoveredRegistry, EmbeddedRuntime } from '@skein/runtime'
import type { Serving } from '@skein/runtime/http'
import { defineCommand, JSON_OPTION, type Command } from '../command.ts'
import { usageError } from '../command-error.ts'
import { loadDefinitions, modelsOf } from '../connect/definitions.ts'
import { localPerson, openRuntime } from '../connect/embed.ts'
import { storeFile } from '../connect/places.ts'
import { removeServerFile, writeServerFile } from '../connect/server-file.ts'
import { DEFAULT_PORT, listen } from '../dev/listen.ts'
import { watchFolder } from '../dev/watch-folder.ts'
import { ExitCode } from '../exit-code.ts'
import type { Output } from '../output.ts'
import { problemLine } from '../problem-line.ts'

const dev: Command = defineCommand({
  operands: [
    {
      name: 'folder',
      description: 'With agents/, prompts/, tools/ …; default: this one, else the examples.',
      isOptional: true,
    },
  ],
  options: {
    port: {
      type: 'string',
      value: 'number',
      description: `To listen on, or the next that is free; default ${DEFAULT_PORT}, 0 is any.`,
    },
    ...JSON_OPTION,
  },
  examples: ['skein dev', 'skein dev ./my-agents --port 8080'],
  async run({ values, operands: [folder], output }) {
    const port = portOf(values.port)
    const registry = await loadDefinitions(folder)
    const tell = (error: unknown): void => output.say(`error: ${wordsOf(error)}`)
    const runtime = await openRuntime(registry, tell)
    try {
      await runtime.start()
      const options = { port, auth: 'none', local: localPerson(), onError: tell } as const
      const serving = await listen(runtime, options)
      return await serveUntilStopped({ registry, runtime, serving, output, asked: port }, values)
    } finally {
      await runtime.stop({ graceMs: GRACE_MS })
    }
  },
})

export default dev

const GRACE_MS = 2000

interface Server {
  readonly registry: DiscoveredRegistry
  readonly runtime: EmbeddedRuntime
  readonly serving: Serving
  readonly output: Output
  readonly asked: number
}

async function serveUntilStopped(
  server: Server,
  { json }: { readonly json?: boolean },
): Promise<ExitCode> {
  const { registry, serving, output, asked } = server
  const stopped = untilStopped(output)
  writeServerFile({ url: serving.url, pid: process.pid })
  const watching = watchFolder(registry.folder, (files) => void reload(server, files))
  if (asked !== 0 && serving.port !== asked)
    output.say(`Port ${asked} is taken; this is ${serving.port}.`)
  announce(server, json === true)
  await stopped
  watching.close()
  removeServerFile()
  await serving.close({ graceMs: GRACE_MS })
  return ExitCode.Done
}

/** Where it is, who is there, and where everything is kept. */
function announce({ registry, serving, output }: Server, isJson: boolean): void {
  const agents = [...registry.agents.keys()]
  const store = relative('', storeFile())
  if (isJson) return output.json({ url: serving.url, agents, models: modelsOf(registry), store })
  const label = (text: string): string => output.paintData('dim', text.padEnd(8))
  output.line(`${label('address')}${output.paintData('cyan', serving.url)}`)
  output.line(`${label('agents')}${agents.join(', ')} (${modelsOf(registry)})`)
  output.line(`${label('store')}${store}`)
}

/** The first signal lets everything finish or park; the second ends at once. */
function untilStopped(output: Output): Promise<void> {
  return new Promise((resolve) => {
    let isStopping = false
    const stop = (): void => {
      if (isStopping) process.exit(ExitCode.Interrupted)
      isStopping = true
      output.say('Stopping; what runs is parked and goes on at the next start.')
      resolve()
    }
    process.on('SIGINT', stop).on('SIGTERM', stop)
  })
}

async function reload({ registry, output }: Server, files: readonly string[]): Promise<void> {
  try {
    const problems = await registry.reload()
    if (problems.length === 0) return output.say(`reloaded: ${files.join(', ')}`)
    output.say(`${output.paint('red', 'not reloaded:')} the last good definitions stay.`)
    for (const problem of problems) output.say(`  ${problemLine(problem)}`)
  } catch (error) {
    output.say(`not reloaded: ${wordsOf(error)}`)
  }
}

function portOf(text: string | undefined): number {
  const port = Number(text ?? DEFAULT_PORT)
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port
  throw usageError(`--port takes a number from 0 to 65535, not "${text}".`)
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
