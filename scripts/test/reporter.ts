import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import {
  DefaultReporter,
  type SerializedError,
  type TestCase,
  type TestModule,
  type TestRunEndReason,
  type TestSpecification,
  type Vitest,
} from 'vitest/node'
import { Progress } from './progress.ts'

const plainEveryMs = 20_000
const redrawEveryMs = 250

/** How long each file took when it last ran, for the estimate of the next run. */
const record = '.tmp/test-durations.json'

/**
 * What people see of a run: on a terminal one line that is updated, elsewhere a line now and then; then each failure in
 * full, and nothing about what passed. The summary is written by scripts/test.ts, which knows more than one run.
 */
export default class PeopleReporter extends DefaultReporter {
  #progress: Progress | undefined
  #timer: NodeJS.Timeout | undefined
  #last = ''
  #durations: Record<string, number> = {}

  constructor() {
    super({ summary: false })
  }

  override onInit(vitest: Vitest): void {
    this.ctx = vitest
    // What a test prints is shown where the test failed.
    this.silent = 'passed-only'
  }

  override onTestRunStart(specifications: readonly TestSpecification[]): void {
    super.onTestRunStart(specifications)
    this.#durations = readDurations(this.ctx.config.root)
    const files = [...new Set(specifications.map(({ moduleId }) => this.#path(moduleId)))]
    this.#progress = new Progress(files, this.#durations, performance.now())
    this.#timer = setInterval(() => this.#show(), this.isTTY ? redrawEveryMs : plainEveryMs)
    this.#timer.unref()
  }

  onTestModuleStart({ moduleId }: TestModule): void {
    this.#progress?.fileStarted(this.#path(moduleId))
  }

  override onTestModuleEnd(module: TestModule): void {
    const file = this.#path(module.moduleId)
    this.#progress?.fileEnded(file)
    this.#durations[file] = Math.round(module.diagnostic().duration)
    super.onTestModuleEnd(module)
  }

  override onTestCaseResult(test: TestCase): void {
    this.#progress?.testEnded(test.result().state === 'failed')
    super.onTestCaseResult(test)
  }

  // Called for each file that ended; one that passed is no news, and failures come at the end.
  protected override printTestModule(): void {}

  override onTestRunEnd(
    modules: readonly TestModule[],
    errors: readonly SerializedError[],
    reason: TestRunEndReason,
  ): void {
    clearInterval(this.#timer)
    this.#clear()
    writeDurations(this.ctx.config.root, this.#durations)
    super.onTestRunEnd(modules, errors, reason)
  }

  override reportTestSummary(): void {}

  #show(): void {
    if (!this.#progress) return
    const [oldest] = this.#progress.running()
    const line = `${this.#progress.line(performance.now())}${oldest === undefined ? '' : ` · ${oldest}`}`
    const { outputStream } = this.ctx.logger
    if (!this.isTTY) return void outputStream.write(`${line}\n`)
    const { columns = 80 } = outputStream as NodeJS.WriteStream
    const shown = line.slice(0, columns - 1)
    if (shown !== this.#last) outputStream.write(`\r\u001b[K${shown}`)
    this.#last = shown
  }

  #clear(): void {
    if (this.isTTY && this.#last !== '') this.ctx.logger.outputStream.write('\r\u001b[K')
    this.#last = ''
  }

  #path(moduleId: string): string {
    return relative(this.ctx.config.root, moduleId).replaceAll('\\', '/')
  }
}

function readDurations(root: string): Record<string, number> {
  try {
    return JSON.parse(readFileSync(join(root, record), 'utf8')) as Record<string, number>
  } catch {
    return {} // the first run
  }
}

function writeDurations(root: string, durations: Readonly<Record<string, number>>): void {
  const file = join(root, record)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `${JSON.stringify(durations)}\n`)
}
