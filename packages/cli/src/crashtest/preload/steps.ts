import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Crashtest, Preloaded, StepKind } from './protocol.ts'

/**
 * Counts the steps of all processes of a program, and kills them at the chosen one. All of it is synchronous: no line
 * of the program runs between the decision and the death.
 */
export function createSteps({ notes, crash }: Preloaded): Crashtest {
  let last = 0
  const begin = (kind: StepKind, name: string): number => {
    // The number is a file that only one process can create.
    for (let number = last + 1; ; number++) {
      const file = join(notes, 'steps', String(number))
      const descriptor = createFile(file)
      if (descriptor === undefined) continue
      writeSync(descriptor, JSON.stringify({ number, kind, name }))
      closeSync(descriptor)
      last = number
      return number
    }
  }
  return {
    step(kind, name) {
      const number = begin(kind, name)
      if (crash?.step === number && crash.when === 'before') die(notes)
      return number
    },
    done(number) {
      if (crash?.step === number && crash.when === 'after') die(notes)
    },
    effect(text) {
      for (let number = 1; ; number++) {
        const descriptor = createFile(join(notes, 'effects', String(number)))
        if (descriptor === undefined) continue
        writeSync(descriptor, text)
        closeSync(descriptor)
        return
      }
    },
  }
}

function createFile(file: string): number | undefined {
  try {
    return openSync(file, 'wx')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return undefined
    throw error
  }
}

/** Kills all processes of the program: its process group, as a machine that fails would. */
function die(notes: string): never {
  writeFileSync(join(notes, 'died'), '')
  try {
    process.kill(-Number(readFileSync(join(notes, 'group'), 'utf8')), 'SIGKILL')
  } catch {
    // Windows has no groups; there the runner ends the other processes.
  }
  process.kill(process.pid, 'SIGKILL')
  throw new Error('unreachable: SIGKILL cannot be handled')
}
