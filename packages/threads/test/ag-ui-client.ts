/** The real client of AG-UI, at the version that peers/sdks pins. Only what the tests use is typed. */
import { peersOf } from '../../../scripts/peers.ts'
import type { AgUiEvent, AgUiMessage } from '../src/convert/ag-ui/index.ts'

export interface AgUiAgent {
  threadId: string
  messages: AgUiMessage[]
  readonly pendingInterrupts: readonly {
    readonly id: string
    readonly message?: string
    readonly toolCallId?: string
  }[]
  addMessage(message: AgUiMessage): void
  runAgent(
    parameters?: {
      readonly runId?: string
      readonly resume?: readonly object[]
      readonly abortController?: AbortController
    },
    subscriber?: { readonly onEvent?: (params: { readonly event: AgUiEvent }) => void },
  ): Promise<{ readonly newMessages: readonly AgUiMessage[] }>
}

export interface AgUiClient {
  readonly HttpAgent: new (config: {
    readonly url: string
    readonly threadId?: string
    readonly initialMessages?: readonly AgUiMessage[]
    readonly headers?: Readonly<Record<string, string>>
    readonly fetch?: (url: string, init: RequestInit) => Promise<Response>
  }) => AgUiAgent
}

const peers = peersOf('sdks')

/** Whether the peers are installed; the test command installs them. */
export const hasAgUiClient: boolean = peers.isInstalled

export async function loadAgUiClient(): Promise<AgUiClient> {
  return peers.load<AgUiClient>('@ag-ui/client')
}

/** Answers with these events, as a server does. */
export function eventsResponse(events: readonly AgUiEvent[]): Response {
  const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}
