import type { JsonSchema } from '@skein/base'
import addFormats from 'ajv-formats'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'

/** One operation of an OpenAPI document, as far as a client needs it. */
export interface Operation {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly scope: string
  readonly params: readonly string[]
  readonly rest: readonly string[]
  readonly query: Readonly<Record<string, JsonSchema>>
  readonly body:
    | {
        readonly type: string
        readonly isRequired: boolean
        readonly schema: JsonSchema
        readonly example?: unknown
      }
    | undefined
  readonly responses: Readonly<Record<string, ResponseSpec>>
}

interface ResponseSpec {
  readonly description: string
  readonly content?: Readonly<Record<string, { readonly schema?: JsonSchema }>>
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly schema: JsonSchema
  readonly 'x-rest'?: boolean
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentOperation>>>>
}

interface DocumentOperation {
  readonly operationId: string
  readonly 'x-scope': string
  readonly parameters: readonly Parameter[]
  readonly requestBody?: {
    readonly required: boolean
    readonly content: Readonly<
      Record<string, { readonly schema: JsonSchema; readonly example?: unknown }>
    >
  }
  readonly responses: Readonly<Record<string, ResponseSpec>>
}

/** A client that knows nothing but the document: it builds requests from it and checks answers against it. */
export class OpenApiClient {
  readonly operations: readonly Operation[]
  readonly #ajv: Ajv2020
  readonly #validators = new Map<string, ValidateFunction>()

  constructor(document: unknown) {
    this.operations = operationsOf(document as Document)
    this.#ajv = new Ajv2020({ strict: false, allErrors: true })
    addFormats.default(this.#ajv)
    this.#ajv.addSchema(document as object, 'doc')
  }

  operation(id: string): Operation {
    const found = this.operations.find((operation) => operation.id === id)
    if (!found) throw new Error(`The document has no ${id}.`)
    return found
  }

  /** What is wrong with an answer by the document; empty when nothing is. */
  async problems(operation: Operation, response: Response): Promise<readonly string[]> {
    const spec = operation.responses[response.status]
    if (!spec) return [`${response.status} is not in the document`]
    const type = (response.headers.get('content-type') ?? '').split(';')[0]!
    if (type === 'text/event-stream') {
      await response.body?.cancel()
      return spec.content?.[type] ? [] : ['a stream is not in the document']
    }
    const text = await response.text()
    if (!spec.content) return text === '' ? [] : ['there is a body']
    const content = spec.content[type] ?? spec.content['*/*']
    if (!content) return [`${type} is not in the document`]
    if (type !== 'application/json' || !content.schema) return []
    const validate = this.#validator(content.schema)
    if (validate(JSON.parse(text))) return []
    return (validate.errors ?? []).map(
      (error) => `${error.instancePath} ${error.message} ${text.slice(0, 300)}`,
    )
  }

  #validator(schema: JsonSchema): ValidateFunction {
    const key = JSON.stringify(schema).replaceAll('"#/', '"doc#/')
    const known = this.#validators.get(key) ?? this.#ajv.compile(JSON.parse(key) as object)
    this.#validators.set(key, known)
    return known
  }
}

function operationsOf({ paths }: Document): Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Operation => {
      const [type, body] = Object.entries(operation.requestBody?.content ?? {})[0] ?? []
      const inPath = operation.parameters.filter((parameter) => parameter.in === 'path')
      return {
        id: operation.operationId,
        method: method.toUpperCase(),
        path,
        scope: operation['x-scope'],
        params: inPath.map(({ name }) => name),
        rest: inPath.filter((parameter) => parameter['x-rest']).map(({ name }) => name),
        query: Object.fromEntries(
          operation.parameters
            .filter((parameter) => parameter.in === 'query')
            .map(({ name, schema }) => [name, schema]),
        ),
        body:
          type !== undefined && body
            ? { type, isRequired: operation.requestBody!.required, ...body }
            : undefined,
        responses: operation.responses,
      }
    }),
  )
}
