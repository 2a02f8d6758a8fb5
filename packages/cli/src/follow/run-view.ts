import type { SessionResult } from '@skein/runtime'
import type { TreeEvent } from '@skein/runtime/client'
import type { Output } from '../output.ts'
import { formatDuration } from './duration.ts'
import { progressLine } from './progress-line.ts'
import type { Tally } from './tally.ts'

/** How a run is shown while it runs. */
export interface RunView {
  show(event: TreeEvent, tally: Tally): void
  /** From time to time, when nothing happens. */
  tick(tally: Tally): void
  /** What it has to say before the summary. */
  end(result: SessionResult): void
}

export interface ViewOptions {
  readonly json?: boolean | undefined
  readonly jsonl?: boolean | undefined
  readonly verbose?: boolean | undefined
  /** Between two models: that is work, and only its result is an answer. */
  readonly isDialogue?: boolean | undefined
}

export function createView(output: Output, options: ViewOptions): RunView {
  return options.jsonl ? eventView(output) : new PeopleView(output, options)
}

/** Events as the HTTP API has them, one a line. */
function eventView(output: Output): RunView {
  return {
    show({ threadId, path, id, event }) {
      output.json({ threadId, path, id, event })
    },
    tick: () => undefined,
    end: () => undefined,
  }
}

/**
 * Words about the run, and its answer. A terminal gets the answer as it forms; a pipe or file only gets
 * what was delivered in the end.
 */
class PeopleView implements RunView {
  readonly #output: Output
  readonly #options: ViewOptions
  readonly #streams: boolean
  #isTextOpen = false
  #hasText = false
  /** Deltas of the step were shown, so its message need not be. */
  #isShown = false

  constructor(output: Output, options: ViewOptions) {
    this.#output = output
    this.#options = options
    this.#streams = output.isTerminal && !options.json && !options.isDialogue
  }

  show(event: TreeEvent, tally: Tally): void {
    if (this.#streams && event.path.length === 1) this.#stream(event.event)
    const line = progressLine(event, {
      isVerbose: this.#options.verbose === true,
      isDialogue: this.#options.isDialogue === true,
    })
    if (line !== undefined) {
      this.#closeText()
      this.#output.say(this.#output.paint('dim', line))
    }
    this.tick(tally)
  }

  tick(tally: Tally): void {
    if (this.#isTextOpen || tally.elapsedMs < 1000) return
    this.#output.status(`… ${formatDuration(tally.elapsedMs)}, ${tally.tokens} tokens`)
  }

  end(result: SessionResult): void {
    this.#closeText()
    if (this.#options.json) this.#output.json(result)
    else if (result.outcome === 'completed' && !this.#hasText) {
      if (result.text !== '') this.#output.line(result.text)
    } else if (result.outcome === 'failed') {
      if (result.reason === 'fail_safe' && this.#hasText)
        this.#output.say('What was said above was not delivered.')
      this.#output.say(`${this.#output.paint('red', 'failed:')} ${result.text}`)
    }
  }

  #stream(event: TreeEvent['event']): void {
    if (event.type === 'step_start') this.#isShown = false
    if (event.type === 'step_reset' || event.type === 'step_failed') this.#closeText()
    if (event.type === 'text_delta') {
      this.#output.data(event.text)
      this.#isTextOpen = this.#hasText = this.#isShown = true
    }
    // Whoever comes in the middle of a step gets the message, not all its deltas.
    if (event.type === 'message_added' && event.message.type === 'assistant') {
      const text = event.message.content
        .map((block) => ('text' in block ? block.text : ''))
        .join('')
      if (!this.#isShown && text !== '') {
        this.#output.data(text)
        this.#isTextOpen = this.#hasText = true
      }
      this.#closeText()
    }
  }

  #closeText(): void {
    if (this.#isTextOpen) this.#output.endLine()
    this.#isTextOpen = false
  }
}
