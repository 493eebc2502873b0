// The service worker: shows push messages, and opens the session that one is about. It has no listener for requests and
// stores nothing, so nothing of a session stays in the browser.

const TITLES = { needs_you: "zot needs you", done: "zot is done", failed: "zot has failed" };

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => {
  const { reason, text, session } = event.data.json();
  const options = {
    body: text,
    tag: session || "timers", // a newer message about a session replaces the older one
    renotify: true,
    icon: "/icon-192.png",
    data: { session },
  };
  event.waitUntil(self.registration.showNotification(TITLES[reason] ?? "zot", options));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data.session));
});

/** Shows the session in the page that is open already, else in a new one. */
async function open(session) {
  const pages = await self.clients.matchAll({ type: "window" });
  const page = pages.find((one) => one.focused) ?? pages[0];
  if (page === undefined) {
    await self.clients.openWindow(`/#${session}`);
    return;
  }
  if (session !== "") page.postMessage({ session }); // a timer that has not begun a session yet has none
  await page.focus();
}
