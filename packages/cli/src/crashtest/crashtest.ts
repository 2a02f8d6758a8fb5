import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { messageOf } from '@skein/base'
import { CommandError, ExitCode, usageError } from '../terminal/command.ts'
import { choosePoints, crashPoints } from './choose-points.ts'
import { type ComparedEffect, compareEffects } from './compare-effects.ts'
import { checkSize } from './project-copy.ts'
import type { ProgramStep, When } from './preload/protocol.ts'
import { type CrashPoint, isDone, type PointRun, runPoint, type Setting } from './run-point.ts'

/** How many crash points are tried, and which. */
export interface CrashtestOptions {
  readonly maxPoints: number
  readonly seed: number
  /** How many crash points are tried at the same time. */
  readonly jobs: number
  /** Called before each crash point. */
  readonly onProgress?: (done: number, total: number) => void
}

/** What happened at one crash point. */
export interface PointResult {
  readonly step: ProgramStep
  readonly when: When
  /** False if the program did not come to this step, although it did without a crash. */
  readonly isReached: boolean
  /** Whether its steps before the crash were those of the run without a crash. */
  readonly isStable: boolean
  /** Whether the program came to its end after the crash. `held`: it says that it waits for a person. */
  readonly ending: 'ended' | 'held' | 'failed' | 'timed_out'
  readonly exitCode: number | null
  /** How often the program was started. */
  readonly starts: number
  readonly effects: readonly ComparedEffect[]
}

/** The result of a crash test. It says the same each time, if the program does the same each time. */
export interface CrashtestResult {
  readonly steps: readonly ProgramStep[]
  /** How many crash points there are; `points` has those that were tried. */
  readonly available: number
  readonly points: readonly PointResult[]
  /** Where requests went that the recorder did not see. */
  readonly unseen: readonly string[]
}

/** How much of a program's output an error shows, in characters. */
const MAX_SHOWN = 2000

/** Runs a program once without a crash, then once for each crash point, and compares what happened. */
export async function crashtest(
  setting: Setting,
  { maxPoints, seed, jobs, onProgress }: CrashtestOptions,
): Promise<CrashtestResult> {
  const place = (): string => mkdtempSync(join(tmpdir(), 'skein-crashtest-'))
  checkSize(setting.folder)
  const baseline = await runPoint(setting, undefined, place())
  checkBaseline(baseline, setting)
  const all = crashPoints(baseline.steps)
  const chosen = choosePoints(all, { max: maxPoints, seed })
  const points: PointResult[] = []
  const unseen = new Set(baseline.unseen)
  let next = 0
  let done = 0
  const work = async (): Promise<void> => {
    while (next < chosen.length) {
      const index = next++
      onProgress?.(done, chosen.length)
      const run = await runPoint(setting, chosen[index], place())
      checkReach(run)
      for (const origin of run.unseen) unseen.add(origin)
      points[index] = resultOf(chosen[index]!, { run, baseline, setting })
      done += 1
    }
  }
  await Promise.all(Array.from({ length: jobs }, work))
  return { steps: baseline.steps, available: all.length, points, unseen: [...unseen].toSorted() }
}

/** Whether an effect was doubled or lost somewhere, or the program did not come to its end after a crash. */
export function hasFailed({ ending, effects }: PointResult): boolean {
  const isBroken = effects.some(({ verdict }) => verdict === 'doubled' || verdict === 'lost')
  return isBroken || ending === 'failed' || ending === 'timed_out'
}

function resultOf(
  { step, when }: CrashPoint,
  {
    run,
    baseline,
    setting,
  }: { readonly run: PointRun; readonly baseline: PointRun; readonly setting: Setting },
): PointResult {
  const { ending, hasCrashed, starts } = run
  const isHeld = ending.how === 'exited' && ending.code !== null && ending.code === setting.heldCode
  const before = run.steps.filter(({ number }) => number < step.number)
  return {
    step,
    when,
    isReached: hasCrashed,
    isStable: before.every(({ name }, index) => name === baseline.steps[index]?.name),
    ending: isHeld
      ? 'held'
      : ending.how === 'timed_out'
        ? 'timed_out'
        : isDone(ending, setting)
          ? 'ended'
          : 'failed',
    exitCode: ending.how === 'exited' ? ending.code : null,
    starts,
    effects: compareEffects(baseline.effects, run.effects, { isHeld }),
  }
}

/** Throws if the program cannot be tested: what it does without a crash is what the crashes are compared with. */
function checkBaseline(run: PointRun, setting: Setting): void {
  checkReach(run)
  const { ending, isPreloaded, steps, effects } = run
  const output = ending.output.trim().slice(-MAX_SHOWN)
  if (ending.how === 'timed_out')
    throw untestable(
      `The program did not end within ${setting.timeoutMs / 1000} s without a crash.`,
      `If it is a server, use --ready, --send and --until; else raise --timeout. Its output:\n${output}`,
    )
  if (!isDone(ending, setting))
    throw untestable(
      `The program ended with exit code ${ending.code} without a crash.`,
      output === '' ? 'It has written nothing.' : `Its output:\n${output}`,
    )
  if (!isPreloaded)
    throw untestable(
      'The program did not start Node, or not with the NODE_OPTIONS of its environment.',
      'crashtest sees the requests of Node programs only.',
    )
  if (steps.length === 0)
    throw untestable(
      'The program sent no request and stored nothing with node:sqlite, so there is no point to crash at.',
      'Requests through fetch, http and https are seen, in the program and its Node children.',
    )
  if (effects.length === 0)
    throw untestable(
      'The program changed nothing that crashtest can count.',
      'Requests other than GET, HEAD and OPTIONS are counted. With --effects <file> each line of a file counts too.',
    )
}

/** Throws if the program wanted to reach something that nothing answers. */
function checkReach({ refused, unanswered, worldError }: PointRun): void {
  if (worldError !== undefined)
    throw usageError(`The module of --world failed: ${messageOf(worldError)}`)
  const [model] = unanswered
  if (model !== undefined)
    throw usageError(
      `The program calls a model, and nothing answers: ${model}`,
      'Answer with --model-script <file> or --replay <file>, or ask the vendor once with --record <file>.',
    )
  const [first] = refused
  if (first === undefined) return
  const isRequest = first.includes(' ')
  const host = isRequest ? new URL(first.split(' ')[1]!).hostname : first.split(':')[0]
  throw usageError(
    `The program wants to reach another machine: ${[...new Set(refused)].join(', ')}`,
    `Nothing leaves this machine. ${isRequest ? 'Answer it with --world <file>, leave' : 'Leave'} it out with --ignore, or allow it with --allow-host ${host}.`,
  )
}

function untestable(message: string, hint: string): CommandError {
  return new CommandError(message, { code: 'CRASHTEST_BASELINE', exitCode: ExitCode.Usage, hint })
}
