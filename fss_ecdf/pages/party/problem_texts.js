// What the page says when something is wrong: what happened and what to do, in English, German and French.

export const PROBLEM_TEXTS = {
  // A campaign that takes no values, and the screen of what did not work
  closedHead: [
    "The study takes no values now",
    "Die Studie nimmt zurzeit keine Werte an",
    "L’étude n’accepte pas de valeurs actuellement",
  ],
  closedNotYet: ["It opens on {time}.", "Sie beginnt am {time}.", "Elle ouvre le {time}."],
  closedSince: ["It closed on {time}.", "Sie endete am {time}.", "Elle s’est terminée le {time}."],
  closedFrozen: [
    "Its operators have stopped it, perhaps to complete it.",
    "Die Betreiber haben sie angehalten, vielleicht um sie abzuschließen.",
    "Ses responsables l’ont suspendue, peut-être pour la terminer.",
  ],
  closedNothing: [
    "Nothing was sent from this page.",
    "Von dieser Seite wurde nichts gesendet.",
    "Rien n’a été envoyé depuis cette page.",
  ],
  closedOut: [
    "An earlier upload from this device is not finished, and a part may have arrived. You can try to finish or to withdraw it.",
    "Eine frühere Übertragung von diesem Gerät ist nicht beendet; ein Teil kann angekommen sein. Sie können versuchen, sie zu beenden oder zurückzunehmen.",
    "Un envoi précédent depuis cet appareil n’est pas terminé ; une partie est peut-être arrivée. Vous pouvez essayer de le terminer ou de le retirer.",
  ],
  retry: ["Try again", "Noch einmal versuchen", "Réessayer"],
  failedHead: ["This did not work", "Das hat nicht geklappt", "Cela n’a pas fonctionné"],
  haltedHead: ["Not finished yet", "Noch nicht beendet", "Pas encore terminé"],
  resume: ["Resume", "Fortsetzen", "Reprendre"],
  sendAgain: ["Send now", "Jetzt senden", "Envoyer maintenant"],

  // What has become of what was sent
  refused: ["Nothing was sent.", "Es wurde nichts gesendet.", "Rien n’a été envoyé."],
  takenBack: [
    "The part that had arrived has been withdrawn at both servers.",
    "Was angekommen war, wurde bei beiden Servern zurückgenommen.",
    "Ce qui était arrivé a été retiré des deux serveurs.",
  ],
  notTakenBack: [
    "The part that had arrived could not be withdrawn yet. This page remembers it: resume or withdraw.",
    "Was angekommen war, konnte noch nicht zurückgenommen werden. Diese Seite merkt es sich: Setzen Sie fort oder nehmen Sie zurück.",
    "Ce qui était arrivé n’a pas encore pu être retiré. Cette page s’en souvient : reprenez ou retirez.",
  ],
  partStored: [
    "{done} of {count} values are stored at both servers. Resume to send the rest, or withdraw.",
    "{done} von {count} Werten liegen bei beiden Servern. Setzen Sie fort, um den Rest zu senden, oder nehmen Sie zurück.",
    "{done} valeurs sur {count} sont enregistrées par les deux serveurs. Reprenez pour envoyer le reste, ou retirez.",
  ],
  perhapsStored: [
    "A part may have arrived. Resume to finish, or withdraw; nothing counts twice.",
    "Ein Teil kann angekommen sein. Setzen Sie fort oder nehmen Sie zurück; nichts zählt doppelt.",
    "Une partie est peut-être arrivée. Reprenez ou retirez ; rien ne compte deux fois.",
  ],
  unfinished: [
    "A withdrawal is not finished. Finish it below.",
    "Eine Rücknahme ist nicht beendet. Beenden Sie sie unten.",
    "Un retrait n’est pas terminé. Terminez-le ci-dessous.",
  ],

  // The page and the browser
  badCampaign: [
    "This page cannot use the study’s description ({field}). Ask for a new page.",
    "Diese Seite kann die Beschreibung der Studie nicht verwenden ({field}). Bitten Sie um eine neue Seite.",
    "Cette page ne peut pas utiliser la description de l’étude ({field}). Demandez une nouvelle page.",
  ],
  unknownScheme: [
    "This page cannot make keys of kind “{scheme}”. Use the command line, fss-dealer.",
    "Diese Seite kann keine Schlüssel der Art „{scheme}“ machen. Nehmen Sie das Programm fss-dealer.",
    "Cette page ne sait pas faire de clés de type « {scheme} ». Utilisez le programme fss-dealer.",
  ],
  unknownKem: [
    "This study requires encryption that also withstands quantum computers ({kem}), and browsers do not have it. Use the command line, fss-dealer.",
    "Diese Studie verlangt eine Verschlüsselung, die auch Quantencomputern standhält ({kem}); Browser haben sie nicht. Nehmen Sie das Programm fss-dealer.",
    "Cette étude exige un chiffrement résistant aux ordinateurs quantiques ({kem}), absent des navigateurs. Utilisez le programme fss-dealer.",
  ],
  noEncryption: [
    "This browser is too old: it lacks the encryption (X25519) with which only the right server can read what you send, or the signatures (Ed25519) by which it confirms that. Use a newer browser or the command line, fss-dealer.",
    "Dieser Browser ist zu alt: Ihm fehlt die Verschlüsselung (X25519), mit der nur der richtige Server lesen kann, was Sie senden, oder die Unterschrift (Ed25519), mit der er es bestätigt. Nehmen Sie einen neueren Browser oder das Programm fss-dealer.",
    "Ce navigateur est trop ancien : il lui manque le chiffrement (X25519) grâce auquel seul le bon serveur peut lire votre envoi, ou la signature (Ed25519) par laquelle il le confirme. Utilisez un navigateur plus récent ou le programme fss-dealer.",
  ],
  insecure: [
    "Open this page over https or as a local file: only then can it keep your receipt safely.",
    "Öffnen Sie diese Seite über https oder als lokale Datei: Nur dann kann sie Ihre Quittung sicher aufbewahren.",
    "Ouvrez cette page par https ou comme fichier local : elle ne peut conserver votre reçu qu’ainsi.",
  ],
  noStorage: [
    "This browser does not let the page keep a receipt, and without one a value could count twice. Allow site data for this page, or leave the private window, and try again.",
    "Dieser Browser lässt die Seite keine Quittung aufbewahren, und ohne sie könnte ein Wert doppelt zählen. Erlauben Sie dieser Seite Websitedaten oder verlassen Sie das private Fenster.",
    "Ce navigateur ne laisse pas la page conserver un reçu, et sans lui une valeur pourrait compter deux fois. Autorisez les données de site pour cette page ou quittez la fenêtre privée.",
  ],
  storageFull: [
    "This device, or its browser, has no space left for the receipt. Free some space and try again.",
    "Dieses Gerät oder sein Browser hat keinen Platz mehr für die Quittung. Schaffen Sie Platz und versuchen Sie es noch einmal.",
    "Cet appareil, ou son navigateur, n’a plus de place pour le reçu. Libérez de la place et réessayez.",
  ],
  noWorker: [
    "The part of this page that makes the keys did not start. Load the page again, or use another browser.",
    "Der Teil dieser Seite, der die Schlüssel macht, ist nicht gestartet. Laden Sie die Seite neu oder nehmen Sie einen anderen Browser.",
    "La partie de cette page qui fabrique les clés n’a pas démarré. Rechargez la page ou utilisez un autre navigateur.",
  ],
  otherTab: [
    "Another tab of this browser is working on this study. Try again when it has finished.",
    "Ein anderer Tab dieses Browsers arbeitet an dieser Studie. Versuchen Sie es noch einmal, wenn er fertig ist.",
    "Un autre onglet de ce navigateur travaille sur cette étude. Réessayez quand il aura terminé.",
  ],
  otherValues: [
    "Other values were sent with this invitation before. Withdraw those first.",
    "Mit dieser Einladung wurden schon andere Werte gesendet. Nehmen Sie diese zuerst zurück.",
    "D’autres valeurs ont déjà été envoyées avec cette invitation. Retirez-les d’abord.",
  ],
  internal: [
    "Something unexpected went wrong ({detail}). Load the page again; what was sent is remembered.",
    "Etwas Unerwartetes ist schiefgegangen ({detail}). Laden Sie die Seite neu; was gesendet wurde, ist gespeichert.",
    "Une erreur inattendue s’est produite ({detail}). Rechargez la page ; ce qui a été envoyé est mémorisé.",
  ],

  // The servers
  swapped: [
    "The servers are in the wrong order: what should be server {server} is the other one. Do not use this page.",
    "Die Server sind vertauscht: Was Server {server} sein sollte, ist der andere. Benutzen Sie diese Seite nicht.",
    "Les serveurs sont inversés : ce qui devrait être le serveur {server} est l’autre. N’utilisez pas cette page.",
  ],
  otherCampaign: [
    "Server {server} describes another study than this page: {found} instead of {expected}. Do not use this page; ask whoever gave it to you.",
    "Server {server} beschreibt eine andere Studie als diese Seite: {found} statt {expected}. Benutzen Sie diese Seite nicht; fragen Sie, wer sie Ihnen gab.",
    "Le serveur {server} décrit une autre étude que cette page : {found} au lieu de {expected}. N’utilisez pas cette page ; demandez à qui vous l’a donnée.",
  ],
  unreachable: [
    "Server {server} cannot be reached. Is this device online? For addresses in your own network the browser may ask for permission first.",
    "Server {server} ist nicht erreichbar. Ist dieses Gerät online? Bei Adressen im eigenen Netz fragt der Browser womöglich erst um Erlaubnis.",
    "Le serveur {server} est injoignable. Cet appareil est-il en ligne ? Pour une adresse de votre réseau, le navigateur demande parfois une autorisation.",
  ],
  silent: [
    "Server {server} did not answer in time. Try again in a few minutes; if the browser asks for permission, allow it.",
    "Server {server} hat nicht rechtzeitig geantwortet. Versuchen Sie es in einigen Minuten noch einmal; fragt der Browser um Erlaubnis, erlauben Sie es.",
    "Le serveur {server} n’a pas répondu à temps. Réessayez dans quelques minutes ; si le navigateur demande une autorisation, accordez-la.",
  ],
  "not-an-answer": [
    "Server {server} sent no answer of this study. Try again later, or ask the organiser.",
    "Server {server} hat keine Antwort dieser Studie gesendet. Versuchen Sie es später noch einmal oder fragen Sie nach.",
    "Le serveur {server} n’a pas envoyé de réponse de cette étude. Réessayez plus tard ou demandez à l’organisateur.",
  ],
  withdrawnFirst: [
    "Check the token and enter it again. If anything arrived nevertheless, it is withdrawn before anything is sent with another token.",
    "Prüfen Sie den Zugangscode und geben Sie ihn noch einmal ein. Wenn doch etwas angekommen ist, wird es zurückgenommen, bevor mit einem anderen Code gesendet wird.",
    "Vérifiez le code et saisissez-le à nouveau. Si quelque chose est tout de même arrivé, cela est retiré avant tout envoi avec un autre code.",
  ],
  earlierStays: [
    "Server {server} has stored the earlier upload, and only the invitation with which it was sent can withdraw it. Open that invitation on this device to resume or withdraw it. Nothing was sent with the new one.",
    "Server {server} hat die frühere Übertragung gespeichert, und nur die Einladung, mit der sie gesendet wurde, kann sie zurücknehmen. Öffnen Sie diese Einladung auf diesem Gerät, um sie fortzusetzen oder zurückzunehmen. Mit der neuen wurde nichts gesendet.",
    "Le serveur {server} a enregistré l’envoi précédent, et seule l’invitation avec laquelle il a été envoyé peut le retirer. Ouvrez cette invitation sur cet appareil pour le reprendre ou le retirer. Rien n’a été envoyé avec la nouvelle.",
  ],
  "not-confirmed": [
    "Server {server} has not confirmed this with its signature: somebody between you and the server may have made up the answer. Try again; if it stays so, tell the organisers.",
    "Server {server} hat das nicht mit seiner Unterschrift bestätigt: Die Antwort kann unterwegs erfunden worden sein. Versuchen Sie es noch einmal; wenn es so bleibt, sagen Sie es den Veranstaltern.",
    "Le serveur {server} n’a pas confirmé cela par sa signature : la réponse a pu être inventée en chemin. Réessayez ; si cela continue, prévenez les organisateurs.",
  ],
  serverSays: [
    "Server {server}: {detail} [{code}]",
    "Server {server}: {detail} [{code}]",
    "Serveur {server} : {detail} [{code}]",
  ],
  "not-authenticated": [
    "The servers do not know your token. Open your invitation again, or check the token.",
    "Die Server kennen Ihren Zugangscode nicht. Öffnen Sie Ihre Einladung noch einmal oder prüfen Sie den Code.",
    "Les serveurs ne connaissent pas votre code. Ouvrez à nouveau votre invitation ou vérifiez le code.",
  ],
  "invitation-used": [
    "Your invitation was used for other values, perhaps in another browser. Withdraw those there first.",
    "Ihre Einladung wurde schon für andere Werte verwendet, vielleicht in einem anderen Browser. Nehmen Sie diese zuerst dort zurück.",
    "Votre invitation a déjà servi pour d’autres valeurs, peut-être dans un autre navigateur. Retirez-les d’abord là-bas.",
  ],
  "campaign-full": [
    "The study has as many values as it takes.",
    "Die Studie hat so viele Werte, wie sie annimmt.",
    "L’étude a autant de valeurs qu’elle en accepte.",
  ],
  "campaign-closed": [
    "The study takes no more values.",
    "Die Studie nimmt keine Werte mehr an.",
    "L’étude n’accepte plus de valeurs.",
  ],
  "not-yet-open": [
    "The study does not take values yet.",
    "Die Studie nimmt noch keine Werte an.",
    "L’étude n’accepte pas encore de valeurs.",
  ],
  "campaign-sealed": [
    "The study is complete or being completed: nothing can be added or withdrawn any more.",
    "Die Studie ist oder wird gerade abgeschlossen: Nichts kann mehr hinzukommen oder zurückgenommen werden.",
    "L’étude est terminée ou sur le point de l’être : rien ne peut plus être ajouté ni retiré.",
  ],
  "site-quota-exceeded": [
    "Your organisation has sent as many values as it may.",
    "Ihre Einrichtung hat so viele Werte gesendet, wie sie darf.",
    "Votre organisation a envoyé autant de valeurs qu’elle le peut.",
  ],
  "site-paused": [
    "The operators have paused your organisation. Ask them before you try again.",
    "Die Betreiber haben Ihre Einrichtung pausiert. Fragen Sie dort nach, bevor Sie es noch einmal versuchen.",
    "Les responsables ont suspendu votre organisation. Contactez-les avant de réessayer.",
  ],
  "site-revoked": [
    "The operators have revoked your token. Ask them for a new one.",
    "Die Betreiber haben Ihren Zugangscode widerrufen. Bitten Sie um einen neuen.",
    "Les responsables ont révoqué votre code. Demandez-leur un nouveau code.",
  ],

  // Values and files
  noValue: ["Enter a value.", "Geben Sie einen Wert ein.", "Saisissez une valeur."],
  noGroup: ["Choose your group.", "Wählen Sie Ihre Gruppe.", "Choisissez votre groupe."],
  noToken: [
    "Enter the token of your invitation.",
    "Geben Sie den Zugangscode Ihrer Einladung ein.",
    "Saisissez le code de votre invitation.",
  ],
  noConsent: [
    "Tick the box if you agree.",
    "Setzen Sie das Häkchen, wenn Sie einverstanden sind.",
    "Cochez la case si vous êtes d’accord.",
  ],
  noColumn: [
    "Choose the column with the values.",
    "Wählen Sie die Spalte mit den Werten.",
    "Choisissez la colonne des valeurs.",
  ],
  noGroupColumn: [
    "Choose the column with the groups.",
    "Wählen Sie die Spalte mit den Gruppen.",
    "Choisissez la colonne des groupes.",
  ],
  sameColumn: [
    "Values and groups cannot be in the same column.",
    "Werte und Gruppen können nicht in derselben Spalte stehen.",
    "Les valeurs et les groupes ne peuvent pas être dans la même colonne.",
  ],
  badNumber: ["“{value}” is not a number.", "„{value}“ ist keine Zahl.", "« {value} » n’est pas un nombre."],
  badInteger: [
    "“{value}” is not a whole number.",
    "„{value}“ ist keine ganze Zahl.",
    "« {value} » n’est pas un nombre entier.",
  ],
  badDate: [
    "“{value}” is not a date like 2026-03-31.",
    "„{value}“ ist kein Datum wie 2026-03-31.",
    "« {value} » n’est pas une date comme 2026-03-31.",
  ],
  badStratum: [
    "“{value}” is not one of the study’s groups.",
    "„{value}“ ist keine Gruppe der Studie.",
    "« {value} » n’est pas un groupe de l’étude.",
  ],
  ambiguousNumber: [
    "“{value}” could mean two numbers. Write {other}, or use the decimal mark of this language.",
    "„{value}“ könnte zwei Zahlen bedeuten. Schreiben Sie {other} oder nehmen Sie das Dezimalzeichen dieser Sprache.",
    "« {value} » peut désigner deux nombres. Écrivez {other}, ou utilisez le séparateur décimal de cette langue.",
  ],
  offScale: [
    "{value} lies outside the scale, which goes from {first} to {last}. Is the unit right?",
    "{value} liegt außerhalb der Skala, die von {first} bis {last} geht. Stimmt die Einheit?",
    "{value} est hors de l’échelle, qui va de {first} à {last}. L’unité est-elle correcte ?",
  ],
  manyOff: [
    "{off} of {values} lie outside the scale from {first} to {last}. Are column and unit right?",
    "{off} von {values} liegen außerhalb der Skala von {first} bis {last}. Stimmen Spalte und Einheit?",
    "{off} sur {values} sont hors de l’échelle de {first} à {last}. La colonne et l’unité sont-elles correctes ?",
  ],
  badRows: [
    "{bad} of {rows} rows cannot be used. Correct the file and choose it again.",
    "{bad} von {rows} Zeilen sind nicht verwendbar. Korrigieren Sie die Datei und wählen Sie sie noch einmal.",
    "{bad} lignes sur {rows} sont inutilisables. Corrigez le fichier et choisissez-le à nouveau.",
  ],
  inRow: ["Row {row}: {what}", "Zeile {row}: {what}", "Ligne {row} : {what}"],
  groupedColumn: [
    "“{value}” may be a decimal number or one in thousands. Save the numbers with a point.",
    "„{value}“ kann eine Dezimalzahl oder eine mit Tausendern sein. Speichern Sie die Zahlen mit Punkt.",
    "« {value} » peut être un nombre décimal ou avec des milliers. Enregistrez les nombres avec un point.",
  ],
  commaList: [
    "“{value}” may be one number or two columns. Save the file with semicolons between columns.",
    "„{value}“ kann eine Zahl sein oder zwei Spalten. Speichern Sie die Datei mit Semikolon zwischen den Spalten.",
    "« {value} » peut être un nombre ou deux colonnes. Enregistrez le fichier avec des points-virgules entre les colonnes.",
  ],
  openQuote: [
    "The file ends inside a quoted cell.",
    "Die Datei endet mitten in einer Zelle in Anführungszeichen.",
    "Le fichier se termine dans une cellule entre guillemets.",
  ],
  noValues: ["There is no value in it.", "Es ist kein Wert darin.", "Il ne contient aucune valeur."],
  notText: [
    "This is not a text file. Save the table as CSV.",
    "Das ist keine Textdatei. Speichern Sie die Tabelle als CSV.",
    "Ce n’est pas un fichier texte. Enregistrez le tableau au format CSV.",
  ],
  unreadableFile: [
    "The file could not be read. Was it moved or changed? Choose it again.",
    "Die Datei konnte nicht gelesen werden. Wurde sie verschoben oder geändert? Wählen Sie sie noch einmal.",
    "Le fichier n’a pas pu être lu. A-t-il été déplacé ou modifié ? Choisissez-le à nouveau.",
  ],
};
