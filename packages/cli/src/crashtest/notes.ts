import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tryParseJson } from '@skein/base'
import type { ProgramStep } from './preload/protocol.ts'

/** What the processes of one start have noted in their folder; see `Preloaded.notes`. */
export class Notes {
  readonly folder: string

  constructor(folder: string) {
    this.folder = folder
    for (const name of ['steps', 'effects', 'refused', 'unseen', 'pids'])
      mkdirSync(join(folder, name), { recursive: true })
  }

  /** Names the process group that dies as a whole. */
  setGroup(pid: number): void {
    writeFileSync(join(this.folder, 'group'), String(pid))
  }

  get hasDied(): boolean {
    return existsSync(join(this.folder, 'died'))
  }

  /** All steps in order. */
  steps(): ProgramStep[] {
    return this.#numbered('steps').flatMap((text) => {
      const step = tryParseJson(text)
      return step === undefined ? [] : [step as unknown as ProgramStep] // `steps.ts` wrote it; one may have died while it wrote
    })
  }

  /** The numbers of the requests before one. */
  earlierRequests(number: number): number[] {
    return this.steps()
      .filter((step) => step.kind === 'request' && step.number < number)
      .map((step) => step.number)
  }

  effects(): string[] {
    return this.#numbered('effects')
  }

  pids(): number[] {
    return readdirSync(join(this.folder, 'pids')).map(Number)
  }

  /** Connections that were refused, and requests that passed the recorder. */
  names(kind: 'refused' | 'unseen'): string[] {
    return readdirSync(join(this.folder, kind)).map(decodeURIComponent).toSorted()
  }

  #numbered(kind: 'steps' | 'effects'): string[] {
    return readdirSync(join(this.folder, kind))
      .toSorted((a, b) => Number(a) - Number(b))
      .map((name) => readFileSync(join(this.folder, kind, name), 'utf8'))
  }
}
