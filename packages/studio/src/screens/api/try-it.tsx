import { useEffect, useMemo, useRef, useState, type FormEvent, type ReactNode } from 'react'
import { escapeJson, safeText } from '@skein/base/safe-text'
import { Play, Square } from '../../icons/lucide.ts'
import { CommandLine, Copy } from '../../parts/copy.tsx'
import { ErrorBox } from '../../parts/error-box.tsx'
import { curlText } from '../../parts/curl.ts'
import { bytes, duration, line } from '../../parts/format.ts'
import { Json } from '../../parts/json.tsx'
import { useMay, useNeedsKey, useStudio } from '../../state/studio.ts'
import {
  exampleBody,
  requestPath,
  typeText,
  type ApiDocument,
  type ApiOperation,
  type ApiValues,
  type Parameter,
} from './openapi.ts'

interface Answered {
  readonly status: number
  readonly type: string
  readonly text: string
  readonly ms: number
  /** Whether the answer is longer than the part that is shown. */
  readonly isCut: boolean
}

/** How many bytes of an answer are read at most. A stream is read until the person stops it. */
const MAX_ANSWER_BYTES = 300_000

interface Sending {
  readonly answer: Answered | undefined
  readonly error: unknown
  readonly isBusy: boolean
  send(path: string, init: RequestInit): Promise<void>
  stop(): void
}

/** Sends a request with the rights of the signed-in person, and reads its answer. */
function useSending(): Sending {
  const studio = useStudio()
  const [answer, setAnswer] = useState<Answered>()
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const abort = useRef<AbortController>(undefined)
  useEffect(() => () => abort.current?.abort(), [])
  return {
    answer,
    error,
    isBusy,
    stop: () => abort.current?.abort(),
    async send(path, init) {
      if (isBusy) return
      const own = (abort.current = new AbortController())
      setBusy(true)
      setError(undefined)
      setAnswer(undefined)
      const startedAt = performance.now()
      try {
        const response = await studio.fetch(`${studio.url}${path}`, { ...init, signal: own.signal })
        const { status } = response
        const type = response.headers.get('content-type') ?? ''
        for await (const part of readParts(response, own.signal))
          setAnswer({ ...part, status, type, ms: performance.now() - startedAt })
      } catch (failure) {
        if (!own.signal.aborted) setError(failure)
      } finally {
        setBusy(false)
      }
    },
  }
}

/** A form for the parameters and the body. Requests are sent with the rights of the person who is signed in. */
export function TryIt({
  operation,
  schemas,
}: {
  readonly operation: ApiOperation
  readonly schemas: ApiDocument['schemas']
}): ReactNode {
  const { url } = useStudio()
  const needsKey = useNeedsKey()
  const example = useMemo(() => exampleBody(operation, schemas), [operation, schemas])
  const [values, setValues] = useState<ApiValues>({})
  const [body, setBody] = useState(example?.text ?? '')
  const { answer, error, isBusy, send, stop } = useSending()
  const isAllowed = useMay(operation.scope) || operation.scope === 'public'
  const { method, parameters } = operation
  const missing = parameters
    .filter(({ in: place, name }) => place === 'path' && (values[name] ?? '') === '')
    .map(({ name }) => name)
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (missing.length > 0) return
    const hasBody = example !== undefined && body !== ''
    void send(requestPath(operation, values), {
      method,
      headers: hasBody ? { 'content-type': mediaTypeOf(example.mediaType) } : undefined,
      body: hasBody ? body : undefined,
    })
  }
  return (
    <section>
      <h2>Try it</h2>
      <form className="stack" onSubmit={submit}>
        {parameters.length > 0 && (
          <div className="api-params">
            {parameters.map((parameter) => (
              <ParameterField
                key={`${parameter.in} ${parameter.name}`}
                parameter={parameter}
                value={values[parameter.name] ?? ''}
                onChange={(value) => setValues({ ...values, [parameter.name]: value })}
              />
            ))}
          </div>
        )}
        {example && (
          <label>
            <span>
              Body <code className="faint small">{example.mediaType}</code>
            </span>
            <textarea
              className="field mono"
              rows={Math.min(14, Math.max(3, body.split('\n').length))}
              spellCheck={false}
              value={body}
              onChange={(event) => setBody(event.target.value)}
            />
          </label>
        )}
        <CommandLine
          text={curlText({
            method,
            url: `${url}${requestPath(operation, values)}`,
            needsKey: needsKey && operation.scope !== 'public',
            mediaType: example?.mediaType,
            body,
          })}
        />
        <div className="btns">
          <button
            className={method === 'GET' ? 'btn' : 'btn primary'}
            disabled={isBusy || !isAllowed || missing.length > 0}
          >
            <Play size={14} aria-hidden /> Send {method}
          </button>
          {isBusy && (
            <button type="button" className="btn" onClick={stop}>
              <Square size={13} aria-hidden /> Stop
            </button>
          )}
          <WhyNot scope={isAllowed ? undefined : operation.scope} missing={missing} />
        </div>
      </form>
      <div aria-live="polite">
        {error !== undefined && <ErrorBox error={error} />}
        {answer && <Answer answer={answer} isOpen={isBusy} />}
      </div>
    </section>
  )
}

/** Says what is missing before the request can be sent. */
function WhyNot({
  scope,
  missing,
}: {
  readonly scope: string | undefined
  readonly missing: readonly string[]
}): ReactNode {
  if (scope !== undefined)
    return (
      <span className="soft">
        You do not have the scope <code>{scope}</code>.
      </span>
    )
  if (missing.length === 0) return null
  return (
    <span className="soft">
      Fill in {missing.join(' and ')} first.
    </span>
  )
}

function ParameterField({
  parameter: { name, in: place, schema, required, description },
  value,
  onChange,
}: {
  readonly parameter: Parameter
  readonly value: string
  readonly onChange: (value: string) => void
}): ReactNode {
  return (
    <label>
      <span>
        <code>{name}</code>{' '}
        <span className="faint small">
          {place}
          {required !== true && ', optional'} · {typeText(schema)}
        </span>
      </span>
      {schema?.enum ? (
        <select className="select" value={value} onChange={(event) => onChange(event.target.value)}>
          <option value="">not sent</option>
          {schema.enum.map((one) => (
            <option key={String(one)}>{String(one)}</option>
          ))}
        </select>
      ) : (
        <input
          className="field"
          required={place === 'path'}
          title={description}
          spellCheck={false}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </label>
  )
}

function mediaTypeOf(name: string): string {
  return name === '*/*' ? 'application/octet-stream' : name
}

/** Yields the part of an answer that has arrived so far, each time it grows. */
async function* readParts(
  response: Response,
  signal: AbortSignal,
): AsyncGenerator<Pick<Answered, 'text' | 'isCut'>, void> {
  const reader = response.body?.getReader()
  const decoder = new TextDecoder()
  let text = ''
  let size = 0
  yield { text, isCut: false }
  if (!reader) return
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      size += value.length
      text += decoder.decode(value, { stream: true })
      const isCut = size > MAX_ANSWER_BYTES
      yield { text, isCut }
      if (isCut || signal.aborted) return
    }
  } finally {
    await reader.cancel().catch(() => undefined) // the answer may have ended
  }
}

function Answer({
  answer: { status, type, text, ms, isCut },
  isOpen,
}: {
  readonly answer: Answered
  readonly isOpen: boolean
}): ReactNode {
  const json = !isOpen && !isCut && type.includes('json') ? parsed(text) : undefined
  return (
    <div className="stack api-result">
      <p>
        <b className={status < 400 ? 'good' : 'bad'}>{status}</b>{' '}
        <span className="soft num">
          {duration(ms)} · {bytes(text.length)}
          {isCut && ', and more that is not shown'} {type !== '' && `· ${line(type, 60)}`}
        </span>
      </p>
      {json !== undefined ? (
        <Json value={json} label="Answer" />
      ) : (
        text !== '' && (
          <div className="json-box">
            <pre className="json" tabIndex={0} aria-label="Answer">
              {type.includes('json') ? escapeJson(text) : safeText(text)}
            </pre>
            <Copy text={text} label="Copy: answer" />
          </div>
        )
      )}
    </div>
  )
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
