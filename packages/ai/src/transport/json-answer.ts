import type { JsonValue } from '@skein/base'
import { ErrorCode, isUPPError, UPPError } from '../contract/error.ts'
import { contextOf, errorOptionsOf, type Answer, type VendorCall } from './attempt.ts'
import type { ErrorContext } from './endpoint.ts'
import { asUPPError } from './frame-reader.ts'
import { errorInBody, excerpt, isHtml } from './http-error.ts'
import type { AnswerReader } from './vendor-run.ts'

/** Reads a body that is one JSON value and makes one value of it. */
export class JsonReader<T> implements AnswerReader<T> {
  readonly #answer: Answer
  readonly #call: VendorCall
  readonly #decode: (json: JsonValue, answer: Answer) => T
  #done = false

  constructor(answer: Answer, call: VendorCall, decode: (json: JsonValue, answer: Answer) => T) {
    this.#answer = answer
    this.#call = call
    this.#decode = decode
  }

  async next(): Promise<T | undefined> {
    if (this.#done) return undefined
    this.#done = true
    const context = contextOf(this.#call)
    const json = parseBody(await this.#answer.text(), this.#answer, context)
    try {
      return this.#decode(json, this.#answer)
    } catch (error) {
      if (isUPPError(error) && error.code !== ErrorCode.InvalidResponse) throw error
      const told = errorInBody(json, this.#answer, errorOptionsOf(this.#call))
      throw told ?? asUPPError(error, context)
    }
  }
}

function parseBody(text: string, answer: Answer, context: ErrorContext): JsonValue {
  try {
    return JSON.parse(text) as JsonValue
  } catch (error) {
    const what = text.trim() === '' ? 'is empty' : isHtml(text) ? 'is a web page' : 'is not JSON'
    throw new UPPError(`The response of ${context.provider} ${what} (HTTP ${answer.status}).`, {
      code: ErrorCode.InvalidResponse,
      ...context,
      statusCode: answer.status,
      cause: error,
      body: text === '' ? undefined : excerpt(text),
      hint: 'If baseUrl is set, check that it ends in the versioned prefix, e.g. /v1.',
    })
  }
}
