import type { Runtime } from '@skein/runtime'
import { LIFECYCLES } from '../operations/schemas.ts'
import type { OpenStreams } from '../streams/open-streams.ts'
import type { RouteCounts } from './services.ts'

const BUCKETS_SECONDS: readonly number[] = [0.005, 0.025, 0.1, 0.5, 2.5, 10]

/** The counters of one server in the Prometheus format. Labels are routes, statuses and codes, never ids. */
export class Metrics {
  readonly #runtime: Runtime
  readonly #streams: OpenStreams
  readonly #routes = new Map<string, RouteCounts>()
  readonly #errors = new Map<string, number>()

  constructor(runtime: Runtime, streams: OpenStreams) {
    this.#runtime = runtime
    this.#streams = streams
  }

  countRequest(route: string, status: number, seconds: number): void {
    const counts = this.#routes.get(route) ?? {
      byStatus: new Map(),
      buckets: BUCKETS_SECONDS.map(() => 0),
      seconds: 0,
      total: 0,
    }
    this.#routes.set(route, counts)
    counts.byStatus.set(status, (counts.byStatus.get(status) ?? 0) + 1)
    counts.total += 1
    counts.seconds += seconds
    for (const [index, bound] of BUCKETS_SECONDS.entries())
      if (seconds <= bound) counts.buckets[index]! += 1
  }

  countError(code: string): void {
    this.#errors.set(code, (this.#errors.get(code) ?? 0) + 1)
  }

  async toText(): Promise<string> {
    const { threads, tokens, costUsd } = await this.#runtime.threads.totals()
    const totals = await this.#runtime.limits.totals()
    const lifecycles = LIFECYCLES.map((lifecycle) =>
      line({ lifecycle }, threads.get(lifecycle) ?? 0),
    )
    const { node } = this.#runtime
    const nodeLines = node ? [line({ node: node.name }, 1)] : []
    return [
      // Counters of requests, errors and streams are those of this process; the others are read from the store.
      ...metric('skein_node_info', 'gauge', 'The node that answers.', nodeLines),
      ...metric('skein_threads', 'gauge', 'Threads by lifecycle.', lifecycles),
      ...single('skein_running_drains', 'gauge', 'Threads that run.', threads.get('running') ?? 0),
      ...single('skein_tokens', 'gauge', 'Tokens of all threads.', tokens),
      ...single('skein_cost_usd', 'gauge', 'Known cost of all threads in US dollars.', costUsd),
      ...single('skein_stream_clients', 'gauge', 'Open streams.', this.#streams.size),
      ...metric(
        'skein_limits_total',
        'counter',
        'What limits of spending and retention have refused, delayed, erased, removed or kept.',
        [...totals].map(([outcome, count]) => line({ outcome }, count)),
      ),
      ...this.#requestLines(),
      ...metric(
        'skein_errors_total',
        'counter',
        'Refused and failed requests by code.',
        [...this.#errors].map(([code, count]) => line({ code }, count)),
      ),
      '',
    ].join('\n')
  }

  *#requestLines(): Generator<string> {
    const requests = [...this.#routes].flatMap(([route, { byStatus }]) =>
      [...byStatus].map(([status, count]) => line({ route, status: String(status) }, count)),
    )
    yield* metric('skein_http_requests_total', 'counter', 'Requests by route.', requests)
    const name = 'skein_http_request_seconds'
    yield `# HELP ${name} Time until the answer began.`
    yield `# TYPE ${name} histogram`
    for (const [route, { buckets, seconds, total }] of this.#routes) {
      for (const [index, bound] of BUCKETS_SECONDS.entries())
        yield `${name}_bucket${line({ route, le: String(bound) }, buckets[index]!)}`
      yield `${name}_bucket${line({ route, le: '+Inf' }, total)}`
      yield `${name}_sum${line({ route }, seconds)}`
      yield `${name}_count${line({ route }, total)}`
    }
  }
}

function single(name: string, type: string, help: string, value: number): string[] {
  return metric(name, type, help, [line({}, value)])
}

function metric(name: string, type: string, help: string, lines: readonly string[]): string[] {
  const all = lines.map((text) => `${name}${text}`)
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...all]
}

function line(labels: Readonly<Record<string, string>>, value: number): string {
  const pairs = Object.entries(labels).map(([name, text]) => {
    const label = text.replace(/[\\"\n]/g, (mark) => (mark === '\n' ? '\\n' : `\\${mark}`))
    return `${name}="${label}"`
  })
  return `${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}`
}
