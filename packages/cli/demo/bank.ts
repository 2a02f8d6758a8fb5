/**
 * The bank of `skein demo`: a program of its own that counts what it is asked to do. It prints its address, and ends when
 * the program that started it closes its standard input.
 *
 * `POST /payments` pays. While the bank is held (`PUT /held`), it pays without answering, so that the agent can be killed
 * when the money has left and no result has come back.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { BankBook, Payment } from './bank-client.ts'

const payments: Payment[] = []
let answered = 0
let lookups = 0
let isHeld = false

const server = createServer((request, response) => {
  answer(request, response).catch((error: unknown) => send(response, 500, { error: String(error) }))
})
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}` })}\n`)
})
process.stdin.resume().on('end', () => process.exit())

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = JSON.parse((await text(request)) || 'null') as unknown
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://bank')
  switch (`${request.method} ${pathname}`) {
    case 'POST /payments':
      payments.push(body as Payment)
      if (isHeld) return
      answered += 1
      return send(response, 200, { paid: true })
    case 'GET /lookup': {
      lookups += 1
      const order = searchParams.get('order')
      return send(response, 200, payments.filter((payment) => payment.order === order).length)
    }
    case 'PUT /held':
      isHeld = body === true
      return send(response, 200, isHeld)
    case 'GET /book':
      return send(response, 200, { payments, answered, lookups } satisfies BankBook)
    default:
      return send(response, 404, { error: 'The bank has no such page.' })
  }
}

function send(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}
