import { ExitCode } from '../terminal/command.ts'
import type { Output } from '../terminal/output.ts'
import { playDemo, type DemoOptions } from './play.ts'
import type { DemoLine } from './scenes.ts'

/** The width of the first column. */
const NAME_WIDTH = 10

/** What `showDemo` plays, and how it ends. */
export interface ShowDemo extends Omit<DemoOptions, 'onLine' | 'atEnd'> {
  /** Resolves when a person wants to leave Studio; undefined if Studio is not wanted. */
  readonly studioUntil: Promise<void> | undefined
}

/** Plays the demo and writes a line for each promise. Returns `Failed` if one was not kept. */
export async function showDemo(
  { studioUntil, ...options }: ShowDemo,
  output: Pick<Output, 'line' | 'say' | 'paint'>,
): Promise<ExitCode> {
  const lines: DemoLine[] = []
  output.line('A refund agent, a scripted model, and a bank in another process that counts.')
  output.line('')
  const { port } = options
  await playDemo({
    ...options,
    onLine(line) {
      lines.push(line)
      output.line(shownLine(line, output))
    },
    async atEnd(url) {
      const kept = lines.filter(({ isKept }) => isKept).length
      output.line('')
      output.line(`${kept} of ${lines.length} promises kept.`)
      if (!studioUntil)
        return output.line(
          `See each step in Studio: ${output.paint('cyan', 'npx skein demo --studio')}`,
        )
      for (const { name, threadId } of lines) {
        const address = `${url}/studio/threads/${threadId}`
        output.line(`${name.padEnd(NAME_WIDTH)} ${output.paint('cyan', address)}`)
      }
      if (port !== 0 && new URL(url).port !== String(port))
        output.say(`Port ${port} is taken, so Studio is at ${url}.`)
      output.say('Ctrl-C ends the demo and removes its files.')
      await studioUntil
    },
  })
  return lines.every(({ isKept }) => isKept) ? ExitCode.Done : ExitCode.Failed
}

function shownLine({ name, isKept, text }: DemoLine, output: Pick<Output, 'paint'>): string {
  const mark = isKept ? output.paint('green', '✓') : output.paint('red', '✗')
  return `${mark} ${output.paint('bold', name.padEnd(NAME_WIDTH))} ${text}`
}
