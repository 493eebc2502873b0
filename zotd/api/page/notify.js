// Push messages to this browser while nobody looks at a session: turned on and off by its user.

import { byId, say } from "./elements.js";
import { CallError, LostError } from "./wire.js";

// The only script that the policy of the page lets a service worker be made of. The name is allowed once, and taken here.
const WORKER = globalThis.trustedTypes
  ? trustedTypes.createPolicy("zot-worker", { createScriptURL: () => "/worker.js" }).createScriptURL("")
  : "/worker.js";

const HELP = "Get a message on this device when a call waits for you, or a long run ends while nobody is looking.";

export class Notifying {
  #call;
  #subscription = null;
  #isAllowed = false;
  #button = byId("notify");
  #help = byId("notify-help");

  /** `call(type, fields)` sends a command; `opened(session)` is called when the user has chosen a message. */
  constructor({ call, opened }) {
    this.#call = call;
    this.#button.addEventListener("click", () => this.#toggle());
    navigator.serviceWorker?.addEventListener("message", ({ data }) => opened(data.session));
  }

  /** Whether this browser gets messages, so that it has to report whether somebody looks at it. */
  get isOn() {
    return this.#subscription !== null;
  }

  /** After each connect: tells the daemon of a subscription again, because it may have forgotten it. */
  async arrived(isAllowed) {
    this.#isAllowed = isAllowed;
    if (!isAllowed || !isSupported()) {
      this.#show();
      return;
    }
    const registration = await navigator.serviceWorker.getRegistration();
    this.#subscription = (await registration?.pushManager.getSubscription()) ?? null;
    if (this.#subscription !== null) await this.#told(() => this.#renew());
    this.#show();
  }

  /** Ends the subscription, because the token is forgotten. */
  async left() {
    await this.#subscription?.unsubscribe();
    this.#subscription = null;
    this.#show();
  }

  async #toggle() {
    this.#button.disabled = true;
    await this.#told(() => (this.isOn ? this.#turnOff() : this.#turnOn()));
    this.#button.disabled = false;
  }

  async #turnOn() {
    if ((await Notification.requestPermission()) !== "granted") {
      this.#show("The browser does not allow notifications of this page: change that in its settings.");
      return;
    }
    const { key } = await this.#call("push.key");
    await navigator.serviceWorker.register(WORKER);
    const registration = await navigator.serviceWorker.ready;
    const options = { userVisibleOnly: true, applicationServerKey: key };
    this.#subscription = await registration.pushManager.subscribe(options);
    await this.#subscribe();
    this.#show();
  }

  async #turnOff() {
    const { endpoint } = this.#subscription;
    await this.left();
    await this.#call("push.unsubscribe", { endpoint });
  }

  async #renew() {
    const { key } = await this.#call("push.key");
    // A daemon that has lost its key cannot send to subscriptions that were made with it.
    if (textOf(this.#subscription.options.applicationServerKey) === key) await this.#subscribe();
    else await this.left();
  }

  async #subscribe() {
    const { endpoint, keys } = this.#subscription.toJSON();
    const fields = { endpoint, public: keys.p256dh, auth: keys.auth, name: browserName() };
    try {
      await this.#call("push.subscribe", fields);
    } catch (error) {
      if (error instanceof CallError) await this.left(); // else the browser would seem to get messages
      throw error;
    }
  }

  async #told(work) {
    try {
      await work();
    } catch (error) {
      if (error instanceof LostError) this.#show("The connection was lost; try again when it is back.");
      else this.#show(error.message); // of the daemon, or of the browser's push service
    }
  }

  #show(problem = "") {
    this.#button.hidden = !this.#isAllowed || !isSupported();
    this.#button.setAttribute("aria-pressed", String(this.isOn));
    say(this.#button, this.isOn ? "Stop notifying this device" : "Notify this device");
    this.#help.hidden = !this.#isAllowed;
    say(this.#help, problem || (isSupported() ? HELP : unsupported()));
  }
}

function isSupported() {
  return isSecureContext && "serviceWorker" in navigator && "PushManager" in globalThis;
}

function unsupported() {
  if (!isSecureContext) return "Messages to this device need HTTPS.";
  return "This browser gets messages only from pages on its home screen: add this one to it.";
}

/** Bytes as base64url without padding. */
function textOf(buffer) {
  const text = btoa(String.fromCharCode(...new Uint8Array(buffer)));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** How people recognise this browser in a list. */
function browserName() {
  const { brands = [], platform = "" } = navigator.userAgentData ?? {};
  const brand = brands.find(({ brand: name }) => !/not.?a.?brand|chromium/i.test(name))?.brand ?? "";
  return [brand || "Browser", platform || navigator.platform].filter(Boolean).join(" on ");
}
