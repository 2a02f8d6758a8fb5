import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Held, ServerAnswer, ServerQuestion } from './protocol.ts'
import { summarise, type ConstructorTotal } from './snapshot.ts'

/** A server of the soak in a process of its own. */
export class Server {
  readonly url: string
  readonly #child: ChildProcess
  readonly #place: string

  private constructor(url: string, child: ChildProcess, place: string) {
    this.url = url
    this.#child = child
    this.#place = place
  }

  static async start(place: string, vendorUrl: string): Promise<Server> {
    mkdirSync(place, { recursive: true })
    const child = fork(join(import.meta.dirname, 'server.ts'), [place, vendorUrl], {
      execArgv: ['--expose-gc', '--conditions=@skein/source', '--no-warnings'],
    })
    // A server that dies takes the run with it: nothing is left to measure.
    child.once('exit', (code, signal) => {
      if (code === 0) return
      console.error(`The server ended with ${code ?? signal}.`)
      process.exit(1)
    })
    const [answer] = (await once(child, 'message')) as [ServerAnswer]
    if (answer.type !== 'ready') throw new Error('The server is not ready.')
    return new Server(answer.url, child, place)
  }

  async held(): Promise<Held> {
    const answer = await this.#ask({ type: 'held' })
    if (answer.type !== 'held') throw new Error('The server answered something else.')
    return answer.held
  }

  /** Summarises a heap snapshot, and removes the file. */
  async picture(): Promise<ConstructorTotal[]> {
    const path = join(this.#place, 'heap.heapsnapshot')
    await this.#ask({ type: 'snapshot', path })
    const totals = summarise(path)
    rmSync(path)
    return totals
  }

  async stop(): Promise<void> {
    const over = once(this.#child, 'exit')
    this.#child.send({ type: 'stop' } satisfies ServerQuestion)
    await over
  }

  async #ask(question: ServerQuestion): Promise<ServerAnswer> {
    const answer = once(this.#child, 'message') as Promise<[ServerAnswer]>
    this.#child.send(question)
    return (await answer)[0]
  }
}
