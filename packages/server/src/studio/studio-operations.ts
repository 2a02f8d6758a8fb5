import {
  done,
  json,
  jsonResponse,
  operation,
  type OperationRoute,
} from '../operations/operation.ts'
import { ALL_SCOPES, type Principal } from '../operations/principal.ts'
import { answer, arrayOf, boolean, choice, maxText, shape, string } from '@skein/base/shape'
import { MAX_KEY } from './studio-sessions.ts'

const me = answer({
  tenant: string,
  'user?': string,
  'name?': string,
  scopes: arrayOf(choice(...ALL_SCOPES)),
  'expiresAt?': string,
  isSignedIn: boolean,
  server: answer({
    name: string,
    version: string,
    prefix: string,
    playground: boolean,
    needsKey: boolean,
  }),
})

/** The operations of Studio's page: who is signed in, sign in and sign out. */
export const studioOperations: readonly OperationRoute[] = [
  operation('getStudioMe', {
    tag: 'studio',
    summary: 'Who you are, what you may do, and facts about the server.',
    scope: 'threads:read',
    answers: [json('You.', me)],
    async run({ principal, services, request }) {
      const session = await services.studio.sessions.find(request)
      return described(principal, session !== undefined, services)
    },
  }),
  operation('createStudioSession', {
    tag: 'studio',
    summary:
      'Signs in with a key: sets a cookie that scripts cannot read, for twelve hours at most.',
    scope: 'public',
    probe: { body: { key: 'your key' } },
    body: { json: shape({ key: maxText(MAX_KEY) }) },
    answers: [json('You.', me)],
    errors: ['UNAUTHENTICATED'],
    async run({ request, body, services, connection }) {
      const { prefix, studio } = services
      const address = connection.address ?? ''
      const signIn = await studio.sessions.begin(request, body.key, { address, prefix })
      return jsonResponse(described(signIn.principal, true, services), {
        headers: { 'set-cookie': signIn.cookie },
      })
    },
  }),
  operation('deleteStudioSession', {
    tag: 'studio',
    summary: 'Signs out.',
    scope: 'public',
    answers: [done('Signed out.')],
    async run({ request, services }) {
      const cookie = await services.studio.sessions.end(request, services.prefix)
      return new Response(null, { status: 204, headers: { 'set-cookie': cookie } })
    },
  }),
]

interface Described {
  readonly prefix: string
  readonly studio: { readonly isPlayground: boolean; readonly needsKey: boolean }
}

function described(principal: Principal, isSignedIn: boolean, { prefix, studio }: Described) {
  const { tenant, user, name, scopes, expiresAt } = principal
  return {
    tenant,
    user,
    name,
    scopes,
    expiresAt: expiresAt === undefined ? undefined : new Date(expiresAt).toISOString(),
    isSignedIn,
    server: {
      name: 'Skein',
      version: '0.1.0',
      prefix,
      playground: studio.isPlayground,
      needsKey: studio.needsKey,
    },
  }
}
