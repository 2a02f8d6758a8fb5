import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Effect } from './effect.ts'
import type { Models } from './model-answers.ts'
import { Notes } from './notes.ts'
import { type StartEnding, type Program, Started } from './program.ts'
import { copyProject, removeCopy } from './project-copy.ts'
import type { ProgramStep, When } from './preload/protocol.ts'
import { Recorder, type RecorderRules } from './recorder.ts'
import { type ServerOptions, ServerUse } from './server-use.ts'
import type { World } from './world.ts'

/** A place at which the program dies. */
export interface CrashPoint {
  readonly step: ProgramStep
  readonly when: When
}

/** What every crash point has in common. */
export interface Setting {
  readonly program: Program
  /** The folder of which each crash point gets a copy. */
  readonly folder: string
  readonly preload: string
  readonly rules: RecorderRules
  readonly models: Models
  readonly makeWorld: () => World
  /** A file of the folder of which each line is an effect. */
  readonly effectsFile: string | undefined
  readonly server: ServerOptions | undefined
  /** The exit code by which the program says that it waits for a person. */
  readonly heldCode: number | undefined
  /** How often the program is started again after it failed, which it does not do because of the crash itself. */
  readonly restarts: number
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** Called when a start of the program has ended. */
  readonly onEnding?: (ending: StartEnding, point: CrashPoint | undefined) => void
}

/** What happened around one crash point. */
export interface PointRun {
  readonly effects: readonly Effect[]
  /** The steps of the first start. */
  readonly steps: readonly ProgramStep[]
  /** Whether the program died at the crash point. */
  readonly hasCrashed: boolean
  /** How the last start ended. */
  readonly ending: StartEnding
  readonly starts: number
  /** Whether the preload was loaded, so the program is one of Node. */
  readonly isPreloaded: boolean
  readonly refused: readonly string[]
  readonly unanswered: readonly string[]
  /** What the world module threw, if it did. */
  readonly worldError: unknown
  /** Where requests went that the recorder did not see. */
  readonly unseen: readonly string[]
}

/**
 * Starts the program in a fresh copy of its folder, lets it die at the crash point, and starts it again until it ends.
 * Without a crash point it runs once. `place` is an empty folder for all of this, which is removed.
 */
export async function runPoint(
  setting: Setting,
  point: CrashPoint | undefined,
  place: string,
): Promise<PointRun> {
  const { makeWorld, rules, models } = setting
  const cwd = copyProject(setting.folder, join(place, 'copy'))
  const allNotes: Notes[] = []
  const recorder = new Recorder({
    rules,
    world: makeWorld(),
    earlierRequests: (number) => allNotes.at(-1)?.earlierRequests(number) ?? [],
  })
  try {
    const address = await recorder.listen()
    const answers = await models.open(point === undefined)
    const use = setting.server && new ServerUse(setting.server, () => recorder.quietMs)
    let failures = 0
    for (;;) {
      const isFirst = allNotes.length === 0
      const notes = new Notes(join(place, `start-${allNotes.length}`))
      allNotes.push(notes)
      const crash = isFirst ? point : undefined
      let started: Started | undefined
      use?.begin()
      recorder.begin({
        models: await answers?.start(),
        crashAfter:
          crash?.when === 'after' && crash.step.kind === 'request' ? crash.step.number : undefined,
        kill: () => started?.kill(),
      })
      started = start(setting, { address, token: recorder.token, notes, cwd, crash, place, use })
      const ending = await started.ended
      setting.onEnding?.(ending, point)
      setting.signal.throwIfAborted()
      const isOver = ending.how === 'stopped' || isDone(ending, setting)
      if (isFirst && ending.how === 'killed') continue
      if (
        !isOver &&
        point !== undefined &&
        ending.how !== 'timed_out' &&
        failures < setting.restarts
      ) {
        failures += 1
        continue
      }
      await answers?.saved()
      return {
        effects: [
          ...recorder.effects,
          ...allNotes.flatMap(notedEffects),
          ...fileEffects(setting, cwd),
        ],
        steps: allNotes[0]!.steps(),
        hasCrashed: allNotes.length > 1 + failures,
        ending,
        starts: allNotes.length,
        isPreloaded: notes.pids().length > 0,
        refused: [...recorder.refused, ...allNotes.flatMap((one) => one.names('refused'))],
        unanswered: [...recorder.unanswered],
        worldError: recorder.worldError,
        unseen: [...new Set(allNotes.flatMap((one) => one.names('unseen')))],
      }
    }
  } finally {
    await recorder.close()
    removeCopy(place)
  }
}

/** Whether a program ended as it should: by itself, or waiting for a person. */
export function isDone(
  { how, code }: StartEnding,
  { heldCode }: Pick<Setting, 'heldCode'>,
): boolean {
  return how === 'stopped' || (how === 'exited' && (code === 0 || code === heldCode))
}

interface StartParts {
  readonly address: string
  readonly token: string
  readonly notes: Notes
  readonly cwd: string
  readonly crash: CrashPoint | undefined
  readonly place: string
  readonly use: ServerUse | undefined
}

function start(
  { program, preload, rules, timeoutMs, signal }: Setting,
  { address, token, notes, cwd, crash, place, use }: StartParts,
): Started {
  const temporary = join(place, 'tmp')
  mkdirSync(temporary, { recursive: true })
  return new Started(program, {
    cwd,
    temporary,
    notes,
    preload,
    preloaded: {
      recorder: address,
      token,
      crash: crash && { step: crash.step.number, when: crash.when },
      ignored: rules.ignored,
      allowedHosts: rules.allowedHosts,
    },
    timeoutMs,
    use,
    signal,
  })
}

function notedEffects(notes: Notes): Effect[] {
  return notes.effects().map((action) => ({ action, body: '' }))
}

function fileEffects({ effectsFile }: Setting, cwd: string): Effect[] {
  if (effectsFile === undefined) return []
  let text: string
  try {
    text = readFileSync(join(cwd, effectsFile), 'utf8')
  } catch {
    return [] // nothing has happened yet
  }
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  return lines.map((line) => ({ action: effectsFile, body: line }))
}
