import { findPackageJSON } from 'node:module'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Command, defineCommand, ExitCode, untilSignal } from '../terminal/command.ts'
import { PORT_OPTION, portOf } from './dev.ts'

/** How long after an error a signal still counts as its cause. */
const SIGNAL_MS = 200

/** `skein demo` */
export const demo: Command = defineCommand({
  operands: [],
  options: {
    studio: {
      type: 'boolean',
      description: 'Shows the threads in Studio when the demo is over, until Ctrl-C.',
    },
    port: PORT_OPTION,
  },
  examples: ['skein demo', 'skein demo --studio'],
  async run({ values, output }) {
    const { showDemo } = await import('../demo/show.ts')
    const { verifyAudit } = await import('@skein/runtime')
    const hasStudio = values.studio === true
    // Without Studio the port does not matter to a person, so a free one is used.
    const port = values.port === undefined && !hasStudio ? 0 : portOf(values.port)
    const interrupted = new AbortController()
    const stopped = untilSignal().then(() => interrupted.abort())
    try {
      return await showDemo(
        {
          folder: demoFolder(),
          skein: join(packageFolder(), 'bin', 'skein.js'),
          port,
          verify: verifyAudit,
          signal: interrupted.signal,
          studioUntil: hasStudio ? stopped : undefined,
        },
        output,
      )
    } catch (error) {
      // Ctrl-C reaches the processes of the demo too, and their end may be noticed before the signal.
      await Promise.race([stopped, sleep(SIGNAL_MS)])
      if (!interrupted.signal.aborted) throw error
      output.say('Stopped. Its processes have ended, and its files are removed.')
      return ExitCode.Interrupted
    }
  },
})

/** The agents of the demo and the program of its bank: built in the published package, the source in a clone. */
function demoFolder(): string {
  return import.meta.filename.endsWith('.js')
    ? join(packageFolder(), 'dist', 'demo-agents')
    : join(packageFolder(), 'demo')
}

function packageFolder(): string {
  return dirname(findPackageJSON(import.meta.url)!)
}
