import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { WorkspaceCopy } from '../workspace-copy.ts'
import { run } from '../workspace.ts'
import type { Breakage, Json } from './breakages.ts'

export interface BreakageOutcome {
  readonly name: string
  readonly noticed: boolean
  /** What the command printed, for one that was not noticed. */
  readonly output: string
}

/** Breaks one thing in the copy, runs the commands, and mends it again. */
export async function runBreakage(
  breakage: Breakage,
  copy: WorkspaceCopy,
): Promise<BreakageOutcome> {
  const files = [...Object.keys(breakage.append ?? {}), ...Object.keys(breakage.json ?? {})]
  const restore = keep(copy.folder, files)
  try {
    for (const [file, text] of Object.entries(breakage.append ?? {})) {
      appendFileSync(join(copy.folder, file), text)
    }
    for (const [file, change] of Object.entries(breakage.json ?? {})) {
      const content = JSON.parse(readFileSync(join(copy.folder, file), 'utf8')) as Json
      change(content)
      writeFileSync(join(copy.folder, file), `${JSON.stringify(content, null, 2)}\n`)
    }
    let last = { code: 0, output: '' }
    for (const command of breakage.commands) {
      last = await run('npm', command, { cwd: copy.folder, quiet: true })
    }
    const noticed = last.code !== 0 && breakage.says.test(withoutColour(last.output))
    return { name: breakage.name, noticed, output: noticed ? '' : last.output }
  } finally {
    restore()
  }
}

/** Remembers files as they are; what did not exist is removed again. */
function keep(folder: string, files: readonly string[]): () => void {
  const contents = files
    .map((file) => join(folder, file))
    .map((file) => [file, existsSync(file) ? readFileSync(file) : undefined] as const)
  return () => {
    for (const [file, content] of contents) {
      if (content === undefined) rmSync(file, { force: true })
      else writeFileSync(file, content)
    }
  }
}

function withoutColour(text: string): string {
  return text.replaceAll(/\u001b\[[\d;]*m/g, '')
}
